package htmlpage

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// FuzzStructure holds that whatever the values are, a page that is taken has the
// tags, attributes, comments, scripts and styles that it has without values.
func FuzzStructure(f *testing.F) {
	for _, page := range []string{
		`<!DOCTYPE html><title>{{.Title}}</title><p title="{{.Text}}" class='a {{.Host}}'>{{.Text}}</p>`,
		`<meta name="description" content="{{.Text}}"><style>a{}</style><script>b</script>{{.Host}}`,
		`<textarea>{{.Text}}</textarea>< {{.Title}}&{{.Text}}; <!-- a -->`,
		`<title></ti{{.Text}}tle>`, `<{{.Text}}b>`, `<b title={{.Text}}>`, `<!-{{.Text}}- {{.Title}}>`, `<b title="{{.Text}}`,
		`<svg><style>{{.Text}}</style><![CDATA[ {{.Title}} ]]></svg>`, `<noscript>{{.Text}}</noscript>`, `<plaintext>{{.Text}}`,
	} {
		f.Add(page, "a", `"'><script>alert(1)</script>`, `--> =/x onclick=1 `)
		f.Add(page, "</title>", "script", "\x00\r\n`!-")
	}
	f.Fuzz(func(t *testing.T, page, title, text, host string) {
		p, err := Parse("a.html", page, fields...)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a.html:") {
				t.Fatalf("the file is not named: %v", err)
			}
			return
		}
		empty := structure(p.Render(nil))
		full := structure(p.Render(map[string]string{"Title": title, "Text": text, "Host": host}))
		if !slices.Equal(empty, full) {
			t.Fatalf("page %q\nwithout values %q\nwith values    %q", page, empty, full)
		}
	})
}

// structure lists all that a page is besides text.
func structure(page []byte) []string {
	var parts []string
	raw := false
	z := html.NewTokenizer(strings.NewReader(string(page)))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return parts
		}
		token := z.Token()
		switch kind {
		case html.TextToken:
			if raw {
				parts = append(parts, "raw "+token.Data)
			}
			continue
		case html.StartTagToken, html.SelfClosingTagToken:
			raw = slices.Contains(rawElements, token.Data)
		case html.EndTagToken:
			raw = false
		}
		var part strings.Builder
		part.WriteString(kind.String() + " " + token.Data)
		for _, a := range token.Attr {
			part.WriteString(" " + a.Key)
			if !holdsText(a.Key) {
				part.WriteString("=" + a.Val)
			}
		}
		parts = append(parts, part.String())
	}
}

// TestStructureOfPagesByChance tries pages and values made of the pieces that
// mean something to a browser, which bytes by chance seldom are.
func TestStructureOfPagesByChance(t *testing.T) {
	pieces := strings.Fields(`< </ <! <!-- --> --!> <? <![CDATA[ ]]> > /> " ' = / & ; a B script style title textarea noscript svg plaintext ` +
		`<a <p> <title> </title> <textarea> </textarea> <script> </script> <style> </style> <svg> </svg> title=" data-x=' value= href=" onclick=' &#1; &#x &amp ` + "` -")
	pieces = append(pieces, " ", "\n", "\x00", "\r", "")
	places := []string{"{{.Title}}", "{{.Text}}", "{{.Host}}"}
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int, pieces []string) string {
		var b strings.Builder
		for range random.IntN(most) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	taken := 0
	for range 10_000 {
		page := text(8, pieces) + places[random.IntN(3)] + text(6, append(places, pieces...)) + text(4, pieces)
		p, err := Parse("a.html", page, fields...)
		if err != nil {
			continue
		}
		taken++
		empty := structure(p.Render(nil))
		full := structure(p.Render(map[string]string{"Title": text(4, pieces), "Text": text(4, pieces), "Host": text(4, pieces)}))
		if !slices.Equal(empty, full) {
			t.Fatalf("page %q\nwithout values %q\nwith values    %q", page, empty, full)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d pages were taken", taken)
	}
	t.Logf("%d pages were taken", taken)
}
