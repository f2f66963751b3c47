package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestNoFieldSaysAnotherPath covers origins that trust a field about the requested path.
// With it, a request without a signature could become a webhook, and a webhook a page.
func TestNoFieldSaysAnotherPath(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(framed))
	h2 := s.agent.mustClaim("h2", wire.Claim{Type: wire.TypeHTTP, Domain: "h2", HTTP2: true}, startH2C(t, http.HandlerFunc(framed))).PublicURL
	s.agent.mustClaim("none", wire.Claim{Type: wire.TypeHTTP, Domain: "none"}, startOrigin(t, http.HandlerFunc(framed)))
	for _, name := range []string{"shop", "h2"} {
		s.setPolicy(t, name, `{"webhooks":[{"path":"/hooks/github","provider":"github","secrets":["`+hookSecret+`"]}]}`)
	}
	for base, want := range map[string]bool{s.http: false, s.https: false, h2: false, strings.Replace(s.http, "shop", "none", 1): true} {
		for target, other := range map[string]string{"/": "/hooks/github", "/hooks/github": "/"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+target, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Hub-Signature-256", hubSignature(nil))
			for _, name := range []string{"X-Original-URL", "X-Rewrite-URL", "X_Original_URL"} {
				req.Header.Set(name, other)
			}
			resp, err := s.visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || strings.Contains(strings.ToLower(string(body)), "url="+other) != want {
				t.Errorf("%s%s: status %d, %s, %v", base, target, resp.StatusCode, body, err)
			}
		}
	}
}

// TestWebhooksSignedWithTheirURL uses a webhook whose signature covers the URL that the
// visitor requests: with this port, over each version of HTTP, and behind a load
// balancer.
func TestWebhooksSignedWithTheirURL(t *testing.T) {
	const document = `{"webhooks":[{"path":"/hooks/square","provider":"square","secrets":["` + hookSecret + `"]}]}`
	cfg := testConfig(t.TempDir())
	cfg.TrustedProxies = []string{"127.0.0.0/8"}
	balanced := startSite(t, cfg, text("origin"))
	balanced.setPolicy(t, "shop", document)
	s := hookSite(t, document)
	const body, target = `{"type":"payment.updated"}`, "/hooks/square/a%20b?x=%2F"
	signed := func(url string) string {
		mac := hmac.New(sha256.New, []byte(hookSecret))
		mac.Write([]byte(url + body))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	ask := func(visitor *http.Client, url, signature string, header http.Header) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(req.Header, header)
		req.Header.Set("X-Square-Hmacsha256-Signature", signature)
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	for name, c := range map[string]struct {
		visitor *http.Client
		base    string
	}{"http": {s.visitor, s.http}, "https": {s.visitor, s.https}, "http/3": {s.visitor3(t), s.https}} {
		for url, want := range map[string]int{
			c.base + target:                          200,
			c.base + "/hooks/square":                 401,
			c.base + strings.TrimSuffix(target, "F"): 401,
			"https://shop.example.com" + target:      401,
		} {
			if got := ask(c.visitor, c.base+target, signed(url), nil); got != want {
				t.Errorf("%s, signed for %s: got status %d, want %d", name, url, got, want)
			}
		}
	}

	const public = "https://shop.example.com" + target
	as := http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example.com"}}
	if got := ask(balanced.visitor, balanced.http+target, signed(public), as); got != 200 {
		t.Errorf("behind a load balancer: got status %d, want 200", got)
	}
	if got := ask(s.visitor, s.http+target, signed(public), as); got != 401 {
		t.Errorf("from one who says that it is a load balancer: got status %d, want 401", got)
	}
}
