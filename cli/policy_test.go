package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/cli/command"
	"adit/tunnel/relay"
	"adit/tunnel/relay/config"
)

// policyDaemon is a fake daemon whose tunnel t_1 has a policy that others change,
// too.
type policyDaemon struct {
	mu       sync.Mutex
	document string
	version  int
}

func (p *policyDaemon) set(document string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.document = document
	p.version++
}

func (p *policyDaemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/healthz":
		fmt.Fprint(w, `{"status":"ok"}`)
		return
	case "/api/v1/tunnels":
		fmt.Fprintf(w, `{"data":{"items":[%s]}}`, tunnelJSON)
		return
	}
	tag := fmt.Sprintf(`"v%d"`, p.version)
	if r.Method == http.MethodPut {
		if match := r.Header.Get("If-Match"); match != "" && match != tag {
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"error":{"code":"precondition_failed","message":"the policy of shop has changed since it was read, so nothing was changed; read it again"}}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		p.document = string(body)
		p.version++
		tag = fmt.Sprintf(`"v%d"`, p.version)
	}
	w.Header().Set("ETag", tag)
	fmt.Fprintf(w, `{"data":{"policy":%s,"editable":true,"set_by":"shop","changed_at":null}}`, p.document)
}

func newPolicyDaemon(t *testing.T) *policyDaemon {
	t.Helper()
	p := &policyDaemon{document: `{"rate":1}`}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	info := `{"connect_addr":"` + strings.TrimPrefix(server.URL, "http://") + `"}`
	if err := os.WriteFile(filepath.Join(dir, "runtime.json"), []byte(info), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ADIT_STATE_DIR", dir)
	t.Setenv("ADIT_CONFIG_DIR", dir)
	return p
}

// TestPolicyThatWasShownReplacesOnlyItself has what show prints be set again, after
// somebody else has changed the policy and before.
func TestPolicyThatWasShownReplacesOnlyItself(t *testing.T) {
	p := newPolicyDaemon(t)
	code, shown, errs := run(t, "", "tunnel", "policy", "show", "shop", "--json")
	if code != command.ExitDone || !strings.Contains(shown, `"etag": "\"v0\""`) {
		t.Fatalf("got exit code %d, %q and %q", code, shown, errs)
	}
	mine := strings.Replace(shown, `"rate": 1`, `"rate": 5`, 1)
	code, after, errs := run(t, mine, "tunnel", "policy", "set", "shop", "--json")
	if code != command.ExitDone || p.document != `{"rate":5}` || !strings.Contains(after, `"v1\""`) {
		t.Fatalf("got exit code %d, %q and %q, and %s is in force", code, after, errs, p.document)
	}
	p.set(`{"deny":["203.0.113.0/24"]}`)
	code, _, errs = run(t, mine, "tunnel", "policy", "set", "shop")
	if code != command.ExitFailed || !strings.Contains(errs, "read it again with `adit tunnel policy show`\n") || strings.Contains(p.document, "rate") {
		t.Errorf("another's change: got exit code %d and %q, and %s is in force", code, errs, p.document)
	}
}

// TestPolicyNamesWhatItReplaces has a bare policy replace what is there, unless
// --if_match says what that has to be.
func TestPolicyNamesWhatItReplaces(t *testing.T) {
	const bare = `{"rate":7}`
	for _, c := range []struct {
		in, args string
		code     int
	}{
		{bare, "", command.ExitDone},
		{bare, `--if_match "v0"`, command.ExitDone},
		{bare, `--if-match v0`, command.ExitDone}, // a shell has taken the quotes
		{bare, `--if_match *`, command.ExitFailed},
		{bare, `--if_match "v9"`, command.ExitFailed},
		{`{"policy":` + bare + `,"etag":"\"v0\""}`, "", command.ExitDone},
		{`{"policy":` + bare + `,"etag":"\"v0\""}`, `--if_match "v9"`, command.ExitFailed},
		{`{"policy":` + bare + `}`, "", command.ExitDone}, // an older relay tells no tag
	} {
		p := newPolicyDaemon(t)
		code, _, errs := run(t, c.in, append([]string{"tunnel", "policy", "set", "t_1", "-"}, strings.Fields(c.args)...)...)
		if code != c.code || (p.document == bare) != (code == command.ExitDone) {
			t.Errorf("%s with %s: got exit code %d and %q, and %s is in force", c.in, c.args, code, errs, p.document)
		}
	}
}

// TestPolicyThatIsNoneSaysWhere holds that nothing is sent.
func TestPolicyThatIsNoneSaysWhere(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "the policy is empty; use {} to allow everyone",
		" \n":                  "the policy is empty",
		"[]":                   "the policy is not a JSON object",
		"null":                 "the policy is not a JSON object",
		"{\n\"rate\": 5,\n}":   "in line 3",
		`{"policy":[]}`:        "the policy is not a JSON object",
		`{"rate":5}{"rate":6}`: "not one JSON document",
		`{"a":"` + strings.Repeat("a", (1<<20)) + `"}`: "over 1 MiB",
	} {
		p := newPolicyDaemon(t)
		for _, whose := range []string{"tunnel", "relay"} {
			code, _, errs := run(t, in, whose, "policy", "set", "shop")
			if code != command.ExitFailed || !strings.Contains(errs, want) || p.version != 0 {
				t.Errorf("%s, %.20q: got exit code %d and %q, want %q", whose, in, code, errs, want)
			}
		}
	}
}

// TestRelayChangesAreNotOverwrittenUnseen has two operators at a time change a
// client's scope, and a policy.
func TestRelayChangesAreNotOverwrittenUnseen(t *testing.T) {
	cfg := config.Defaults()
	cfg.Domain, cfg.DataDir, cfg.PublicHost = "relay.test", t.TempDir(), "127.0.0.1"
	cfg.TunnelListen, cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen, cfg.ConsoleListen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	r, err := relay.New(relay.Options{Config: cfg, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	console := "http://" + r.Addrs().Console
	operate := func(at, in string, args ...string) (int, string, string) {
		env, out, errs := testEnv(in)
		env.Getenv = func(name string) string {
			return map[string]string{"ADIT_RELAY_ADMIN_URL": at, "ADIT_RELAY_ADMIN_TOKEN": r.AdminToken()}[name]
		}
		code := Run(t.Context(), env, append([]string{"relay"}, args...))
		return code, out.String(), errs.String()
	}
	must := func(in string, args ...string) string {
		t.Helper()
		code, out, errs := operate(console, in, args...)
		if code != command.ExitDone {
			t.Fatalf("%v: got exit code %d and %q", args, code, errs)
		}
		return out
	}
	must("", "client", "add", "shop")

	sink := func(args ...string) []string {
		return append([]string{"sink", "set", "log", "udp://192.0.2.1:514"}, args...)
	}
	must("", sink()...)
	var seen struct{ ETag string }
	if err := json.Unmarshal([]byte(must("", "sink", "show", "log", "--json")), &seen); err != nil || seen.ETag == "" {
		t.Fatalf("sink show: %v, no etag", err)
	}
	must("", sink("--if_match", seen.ETag, "--refused_only")...)
	if code, _, errs := operate(console, "", sink("--if_match", seen.ETag)...); code != command.ExitFailed || !strings.Contains(errs, "read it again with `adit relay sink show log`") {
		t.Errorf("another's change of a sink: got exit code %d and %q", code, errs)
	}
	if shown := must("", "sink", "show", "log"); !strings.Contains(shown, "Only refused  yes") {
		t.Errorf("another's change of a sink is gone: %s", shown)
	}

	// Between what a command reads and what it writes, the other operator comes.
	to, err := url.Parse(console)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var once sync.Once
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPatch {
			once.Do(func() {
				if code, _, errs := operate(console, "", "client", "set", "shop", "--types", "http"); code != command.ExitDone {
					t.Errorf("the other operator: %s", errs)
				}
			})
		}
		proxy.ServeHTTP(w, q)
	}))
	defer between.Close()
	if code, _, errs := operate(between.URL, "", "client", "set", "shop", "--tunnels", "7"); code != command.ExitDone {
		t.Errorf("got exit code %d and %q", code, errs)
	}
	var shop struct {
		Scope struct {
			Types   []string
			Tunnels int
		}
	}
	if err := json.Unmarshal([]byte(must("", "client", "show", "shop", "--json")), &shop); err != nil {
		t.Fatal(err)
	}
	if shop.Scope.Tunnels != 7 || len(shop.Scope.Types) != 1 {
		t.Errorf("both operators' changes: got %+v", shop.Scope)
	}

	must(`{"rate":1}`, "policy", "set", "shop")
	shown := must("", "policy", "show", "shop", "--json")
	mine := strings.Replace(shown, `"rate": 1`, `"rate": 5`, 1)
	after := must(mine, "policy", "set", "shop", "--json")
	if !strings.Contains(after, `"rate": 5`) || !strings.Contains(after, `"etag"`) {
		t.Errorf("set again: got %s", after)
	}
	if code, _, errs := operate(console, mine, "policy", "set", "shop"); code != command.ExitFailed || !strings.Contains(errs, "has changed since it was read") {
		t.Errorf("set once more: got exit code %d and %q", code, errs)
	}
	must(`{"rate":2}`, "policy", "set", "shop")
}
