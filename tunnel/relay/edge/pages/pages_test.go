package pages

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// TestGRPCIsToldByItsOwnStatus compares the status for gRPC clients with gRPC's mapping of
// HTTP statuses. Only failures that may pass are 14, which clients retry.
func TestGRPCIsToldByItsOwnStatus(t *testing.T) {
	pages := New("", slog.New(slog.DiscardHandler))
	for status, want := range map[int]string{
		http.StatusBadRequest: "13", http.StatusUnauthorized: "16", http.StatusForbidden: "7", http.StatusNotFound: "12",
		http.StatusTooManyRequests: "14", http.StatusBadGateway: "14", http.StatusServiceUnavailable: "14", http.StatusGatewayTimeout: "14",
		http.StatusMisdirectedRequest:    "14", // by another connection
		http.StatusRequestEntityTooLarge: "2", http.StatusRequestTimeout: "2", http.StatusLoopDetected: "2", http.StatusNotImplemented: "2",
	} {
		r := httptest.NewRequest(http.MethodPost, "/pkg.Service/Method", nil)
		r.Header.Set("Content-Type", "application/grpc+proto")
		w := httptest.NewRecorder()
		pages.Answer(w, r, Page{Status: status, Title: "what is wrong"})
		if got := w.Header().Get("Grpc-Status"); w.Code != http.StatusOK || got != want || w.Header().Get("Grpc-Message") != "what is wrong" {
			t.Errorf("%d: got status %d and gRPC's %q, %q, want 200 and %q, with what is wrong", status, w.Code, got, w.Header().Get("Grpc-Message"), want)
		}
	}
}

// TestGRPCWebIsToldInItsOwnType matters because gRPC-Web clients do not accept answers of
// gRPC's type.
func TestGRPCWebIsToldInItsOwnType(t *testing.T) {
	pages := New("", slog.New(slog.DiscardHandler))
	for asked, want := range map[string]string{
		"application/grpc": "application/grpc", "application/grpc+proto": "application/grpc",
		"application/grpc-web": "application/grpc-web", "application/grpc-web+proto": "application/grpc-web",
		"application/grpc-web-text": "application/grpc-web-text", "application/grpc-web-text+proto; charset=utf-8": "application/grpc-web-text",
	} {
		r := httptest.NewRequest(http.MethodPost, "/pkg.Service/Method", nil)
		r.Header.Set("Content-Type", asked)
		w := httptest.NewRecorder()
		pages.Answer(w, r, Page{Status: http.StatusServiceUnavailable, Title: "This site is offline"})
		if got := w.Header().Get("Content-Type"); got != want || w.Header().Get("Grpc-Status") != "14" {
			t.Errorf("%s is answered as %s with gRPC's status %q, want %s with 14", asked, got, w.Header().Get("Grpc-Status"), want)
		}
	}
}

// TestAnswersAreOfTheFormThatIsAskedFor checks that visitors who list JSON before HTML get
// JSON, and that no form of the answer is cached, sniffed or executed.
func TestAnswersAreOfTheFormThatIsAskedFor(t *testing.T) {
	const (
		html = "text/html; charset=utf-8"
		json = "application/json"
	)
	page := Page{Status: http.StatusBadGateway, Title: "No answer", Text: "The service is <away>."}
	for _, test := range []struct {
		method, accept string
		page           Page
		form, want     string
	}{
		{"GET", "", page, html, "The service is &lt;away&gt;."},
		{"GET", "text/html,application/json", page, html, "<h1>No answer</h1>"},
		{"GET", "image/png, */*", page, html, "<h1>No answer</h1>"},
		{"GET", "application/json, text/html", page, json, `"message":"The service is \u003caway\u003e."`},
		{"GET", "application/problem+json;q=0.9", page, json, `"code":"origin_down"`},
		{"GET", "application/json", Page{Status: http.StatusNotFound, Title: "Not here"}, json, `"message":"Not here."`},
		{"HEAD", "application/json", page, json, ""},
		{"HEAD", "text/html", page, html, ""},
	} {
		r := httptest.NewRequest(test.method, "http://shop.example.com/", nil)
		r.Header.Set("Accept", test.accept)
		w := httptest.NewRecorder()
		New("", slog.New(slog.DiscardHandler)).Answer(w, r, test.page)
		h, body := w.Header(), w.Body.String()
		if w.Code != test.page.Status || h.Get("Content-Type") != test.form || !strings.Contains(body, test.want) || (body == "") != (test.method == "HEAD") {
			t.Errorf("%s for %q: got %d, %s, %q, want %d, %s, %q in it", test.method, test.accept, w.Code, h.Get("Content-Type"), body, test.page.Status, test.form, test.want)
		}
		if length := h.Get("Content-Length"); length == "0" || body != "" && length != strconv.Itoa(len(body)) {
			t.Errorf("%s for %q: got length %s of %d bytes", test.method, test.accept, length, len(body))
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || test.form == html && !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s for %q: got header %v, want that nothing is kept, guessed or run", test.method, test.accept, h)
		}
	}
}
