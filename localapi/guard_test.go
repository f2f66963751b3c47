package localapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestOwnPageBehindAProxyWithTLS has the scheme be the proxy's, as long as the host is the
// one that was asked for.
func TestOwnPageBehindAProxyWithTLS(t *testing.T) {
	g, err := newGuard([]string{"adit.example"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{
		"https://adit.example": true, "http://adit.example": true, "https://adit.example.evil.example": false, "ftp://adit.example": false, "adit.example": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://adit.example"+Prefix+"/pause", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if err := g.checkOrigin(r); (err == nil) != want {
			t.Errorf("%s: got %v, want it let in %v", origin, err, want)
		}
	}
}

// TestAnswersToOriginsAreNotShared has caches keep them apart, and browsers be told of the
// private network only if they ask.
func TestAnswersToOriginsAreNotShared(t *testing.T) {
	const console = "https://console.example"
	g, err := newGuard(nil, []string{console})
	if err != nil {
		t.Fatal(err)
	}
	for _, origin := range []string{console, "https://evil.example", ""} {
		r := httptest.NewRequest(http.MethodGet, Prefix+"/status", nil)
		r.Header.Set("Origin", origin)
		h := http.Header{}
		if g.allow(h, r); !slices.Contains(h.Values("Vary"), "Origin") {
			t.Errorf("of %q: the answer varies by %q", origin, h.Values("Vary"))
		}
	}
	for asked, want := range map[string]string{"true": "true", "": ""} {
		r := httptest.NewRequest(http.MethodOptions, Prefix+"/status", nil)
		r.Header.Set("Origin", console)
		r.Header.Set("Access-Control-Request-Private-Network", asked)
		w := httptest.NewRecorder()
		if g.answerPreflight(w, r); w.Header().Get("Access-Control-Allow-Private-Network") != want {
			t.Errorf("asked %q, the private network is allowed %q", asked, w.Header().Get("Access-Control-Allow-Private-Network"))
		}
	}
}

// TestDepthOfBodies counts what is open, and nothing that a text has.
func TestDepthOfBodies(t *testing.T) {
	deep := func(open, shut string, levels int) string {
		return strings.Repeat(open, levels) + "1" + strings.Repeat(shut, levels)
	}
	brackets := strings.Repeat("[", maxDepth+1)
	for body, want := range map[string]bool{
		deep("[", "]", maxDepth):                           true,
		deep("[", "]", maxDepth+1):                         false,
		deep("[ ", "]", maxDepth+1):                        false,
		deep(`{"a":`, "}", maxDepth+1):                     false,
		`{"a":"\\","b":` + deep("[", "]", maxDepth) + "}":  false,
		`{"a":"` + brackets + `"}`:                         true,
		`{"a":"\"` + brackets + `"}`:                       true,
		"[" + strings.Repeat("[],{},", maxDepth+1) + "{}]": true,
	} {
		if err := checkJSON([]byte(body)); (err == nil) != want {
			t.Errorf("%s: got %v, want it taken %v", body, err, want)
		}
	}
}
