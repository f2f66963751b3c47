package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/tunnel/link"
)

// TestProxyAtFaultIsNamed has proxies in the environment that lead nowhere: what the
// status says must not put it on the relay.
func TestProxyAtFaultIsNamed(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer refuses.Close()
	host := strings.TrimPrefix(refuses.URL, "http://")
	for _, test := range []struct{ name, value, want string }{
		{"no address", "http://me:s3cret@proxy:port", "HTTPS_PROXY is not an address such as http://proxy.example:3128; correct it and restart adit"},
		{"refuses", "http://me:s3cret@" + host, "the proxy " + host + " of HTTPS_PROXY or ALL_PROXY does not lead to the relay at relay.example:4433: it answered 407 Proxy Authentication Required"},
		{"not there", "http://127.0.0.1:1", "the proxy 127.0.0.1:1 of HTTPS_PROXY or ALL_PROXY does not lead to the relay at relay.example:4433: nothing answers there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"} {
				t.Setenv(name, "")
			}
			t.Setenv("HTTPS_PROXY", test.value)
			token := newFakeRelay(t).token()
			token.Relay = "relay.example:4433"
			a, _ := startAgent(t, Config{AuthToken: token.Reveal(), Transport: link.TLS})
			eventually(t, "the status has an error", func() bool { return a.Status().LastError != "" })
			if got := a.Status().LastError; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
