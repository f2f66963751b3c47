// Package pages renders what visitors see instead of a site: the operator's page or the
// built-in one, or the same message as JSON or for gRPC if the visitor prefers that. Its
// callers decide what the page says.
package pages

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adit/internal/htmlpage"
)

// Page is what a visitor sees instead of the site.
type Page struct {
	Status      int
	Title, Text string
}

// code returns the page's code in JSON.
func (p Page) code() string {
	switch p.Status {
	case http.StatusBadGateway:
		return "origin_down"
	case http.StatusServiceUnavailable:
		return "offline"
	case http.StatusGatewayTimeout:
		return "origin_timeout"
	}
	return strings.ReplaceAll(strings.ToLower(http.StatusText(p.Status)), " ", "_")
}

// fields are the fields available to a page, such as {{.Status}}.
var fields = []string{"Status", "Code", "Title", "Text", "Host"}

// values returns the values of a page's fields for a visitor of host.
func (p Page) values(host string) map[string]string {
	if len(host) > maxHost {
		host = ""
	}
	return map[string]string{
		"Status": strconv.Itoa(p.Status), "Code": p.code(), "Title": p.Title, "Text": p.Text, "Host": strings.ToLower(host),
	}
}

// maxHost is the longest possible name with a port; longer ones are not shown.
const maxHost = 260

var builtIn = htmlpage.Must(htmlpage.Parse("built-in page", `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{{.Title}}</title>
<style>
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto 0;padding:0 1.5rem}
h1{font-size:1.5rem;line-height:1.25}
p.status{opacity:.7}
p:empty{display:none}
</style>
</head>
<body>
<main>
<p class="status">{{.Status}}</p>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</main>
</body>
</html>
`, fields...))

// Answer answers with a page, preferably the operator's, or with JSON if the visitor prefers
// that.
func (c *Set) Answer(w http.ResponseWriter, r *http.Request, p Page) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if kind := grpcKind(r.Header.Get("Content-Type")); kind != "" {
		h.Set("Content-Type", kind)
		h.Set("Grpc-Status", grpcStatus(p.Status))
		h.Set("Grpc-Message", p.Title)
		w.WriteHeader(http.StatusOK)
		return
	}
	if wantsJSON(r.Header.Get("Accept")) {
		h.Set("Content-Type", "application/json")
		message := p.Title + "."
		if p.Text != "" {
			message = p.Text
		}
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"code": p.code(), "message": message}}) // strings always marshal
		respond(w, r, p.Status, append(body, '\n'))
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	respond(w, r, p.Status, c.choose(p).Render(p.values(r.Host)))
}

// AnswerText is Answer for callers that do not know Page.
func (c *Set) AnswerText(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	c.Answer(w, r, Page{Status: status, Title: title, Text: text})
}

// respond writes an answer with a Content-Length, so that the visitor knows where it ends even
// while it is still sending.
func respond(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// grpcKinds are the content types of gRPC and gRPC-Web, longest first. Their clients accept
// only answers of the same type.
var grpcKinds = []string{"application/grpc-web-text", "application/grpc-web", "application/grpc"}

// grpcKind returns the entry of grpcKinds that matches a request, or "".
func grpcKind(contentType string) string {
	at := slices.IndexFunc(grpcKinds, func(kind string) bool { return strings.HasPrefix(contentType, kind) })
	if at < 0 {
		return ""
	}
	return grpcKinds[at]
}

// grpcStatus follows gRPC's mapping of HTTP statuses. Clients may retry after 14, so that is
// also used if the request needs another connection.
func grpcStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "13"
	case http.StatusUnauthorized:
		return "16"
	case http.StatusForbidden:
		return "7"
	case http.StatusNotFound:
		return "12"
	case http.StatusMisdirectedRequest, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "14"
	}
	return "2"
}

// wantsJSON reports whether an Accept header lists JSON before HTML.
func wantsJSON(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		switch {
		case media == "text/html":
			return false
		case media == "application/json" || strings.HasSuffix(media, "+json"):
			return true
		}
	}
	return false
}
