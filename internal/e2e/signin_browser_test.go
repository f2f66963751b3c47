package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"adit/internal/buildtest"
	"adit/internal/identitytest"
	"adit/internal/require"
)

// TestVisitorSignsInByABrowser has Chromium open a tunnel whose policy asks for a
// sign-in: it goes to the provider and comes back to the very page it asked for,
// signs out, and is asked again.
func TestVisitorSignsInByABrowser(t *testing.T) {
	browse := browser(t)
	provider := filepath.Join(t.TempDir(), "provider")
	if err := buildtest.Program(provider, identitytest.Program, "-modfile="+filepath.Join("..", "..", "tools.mod")); err != nil {
		require.Missing(t, "the identity provider cannot be built: %v", err)
	}
	relay := prepareRelay(t)
	_, port, err := net.SplitHostPort(relay.https)
	if err != nil {
		t.Fatal(err)
	}
	issuer := identitytest.Start(t, provider, "https://sign-in.localhost:"+port+"/callback")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(identitytest.ClientSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	relay.extra = []string{"--config", relayConfig(t, fmt.Sprintf(
		"[[sign_in]]\nname = \"company\"\nissuer = %q\nclient_id = %q\nclient_secret_file = %q\n", issuer, identitytest.ClientID, secret,
	))}
	relay.start()

	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user=%s email=%s cookie=%s host=%s", r.Header.Get("X-Forwarded-User"), r.Header.Get("X-Forwarded-Email"), r.Header.Get("Cookie"), r.Host[:len(r.Host)-len(port)-1])
	}))
	t.Cleanup(origin.Close)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	site := agent.publish("https", portOf(t, origin.Listener.Addr().String()), map[string]any{"domain": "shop"})
	policyFile := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policyFile, []byte(`{"sign_in":{"provider":"company","emails":["test-user@zitadel.ch"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "relay", "policy", "set", "shop", policyFile, "--data_dir", relay.dir)
	t.Log(browse("e2e:visitor",
		"ADIT_SITE="+site.PublicURL+"/",
		"ADIT_SPKI="+keySum(t, filepath.Join(relay.dir, "ca.pem")),
		"ADIT_PASSWORD="+identitytest.Password,
	))
}
