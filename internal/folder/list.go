package folder

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"adit/internal/bytesize"
	"adit/internal/natural"
)

// maxListed is how many names a list has at most, and is looked through for.
const maxListed = 5000

// list answers with what is in a folder.
func (f opened) list(w http.ResponseWriter, r *http.Request, name string) error {
	entries, more, err := f.entries(name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	body := page(f.title(name), name != ".", entries, more)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, err = io.WriteString(w, body)
	}
	return err
}

// title is what a list is called: the folder's own name and the path in it.
func (f *Folder) title(name string) string {
	if name == "." {
		return f.name
	}
	return f.name + "/" + filepath.ToSlash(name)
}

// entries are what visitors may see of a folder, folders first; more reports
// whether there are others.
func (f opened) entries(name string) (entries []fs.FileInfo, more bool, err error) {
	dir, err := f.root.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	found, err := dir.ReadDir(maxListed + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("list %s: %w", name, err)
	}
	if more = len(found) > maxListed; more {
		found = found[:maxListed]
	}
	for _, e := range found {
		if !f.hidden && hiddenName(e.Name()) {
			continue
		}
		info, err := f.root.Stat(filepath.Join(name, e.Name())) // what a link leads to, if it stays within
		if busy(err) {                                          // all that follow would be missing, too
			return nil, false, err
		}
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		entries = append(entries, renamed{info, e.Name()})
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Or(natural.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())), natural.Compare(a.Name(), b.Name()))
	})
	return entries, more, nil
}

// renamed is a file under the name that a link gives it.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>%s</title>
<style>
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.25rem;overflow-wrap:anywhere}
table{width:100%%;border-collapse:collapse}
th{text-align:start;font-weight:normal;opacity:.7}
td,th{padding:.35rem .5rem;border-bottom:1px solid color-mix(in srgb,currentColor 15%%,transparent)}
td:first-child{width:100%%;overflow-wrap:anywhere}
td:not(:first-child),th:not(:first-child){text-align:end;white-space:nowrap;font-variant-numeric:tabular-nums}
a{text-decoration:none}a:hover{text-decoration:underline}
@media(max-width:34rem){td:last-child,th:last-child{display:none}}
</style>
</head>
<body>
<main>
<h1>%s</h1>
`

// page is a list as a visitor sees it.
func page(title string, inner bool, entries []fs.FileInfo, more bool) string {
	var b strings.Builder
	title = html.EscapeString(title)
	fmt.Fprintf(&b, pageHead, title, title)
	if len(entries) == 0 && !inner {
		b.WriteString("<p>There is nothing in this folder.</p>\n</main>\n</body>\n</html>\n")
		return b.String()
	}
	b.WriteString("<table>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Size</th><th scope=\"col\">Changed (UTC)</th></tr></thead>\n<tbody>\n")
	if inner {
		b.WriteString("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n")
	}
	for _, e := range entries {
		name, size := e.Name(), bytesize.Text(e.Size())
		if e.IsDir() {
			name, size = name+"/", ""
		}
		fmt.Fprintf(&b, "<tr><td><a href=\"%s\">%s</a></td><td>%s</td><td>%s</td></tr>\n",
			html.EscapeString((&url.URL{Path: "./" + name}).String()), html.EscapeString(name), size, e.ModTime().UTC().Format("2006-01-02 15:04"))
	}
	b.WriteString("</tbody>\n</table>\n")
	if more {
		fmt.Fprintf(&b, "<p>There is more in this folder than %d names; the others are not listed.</p>\n", maxListed)
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.String()
}
