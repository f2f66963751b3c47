package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TestHeadersAreClaimed creates a tunnel that changes headers, changes what it
// changes, and starts the agent anew.
func TestHeadersAreClaimed(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeatureHeaders)
	var log bytes.Buffer
	dir := t.TempDir()
	a, _ := configured(t, r, Config{StateDir: dir, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	long := strings.Repeat("<", wire.MaxHeaderBytes-len("X-Long")) // as JSON for HTML, twice as much as a relay reads
	request, response := wire.ChangeHeaders(map[string]string{"X-Api-Key": "geheim", "x-env": "prod"}), wire.ChangeHeaders(map[string]string{"Server": "", "X-Long": strings.TrimPrefix(long, "<<<<<<")})
	web := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop", RequestHeaders: request, ResponseHeaders: response})
	if web.RequestHeaders != request || web.ResponseHeaders != response {
		t.Errorf("got %+v", web)
	}
	claimed := func() wire.Claim {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.claims[web.ID]
	}
	if c := claimed(); c.RequestHeaders != request || c.ResponseHeaders != response {
		t.Errorf("claimed %+v", c)
	}

	// A patch replaces all of one direction, and {} leaves none.
	for _, step := range []struct {
		patch             string
		request, response wire.HeaderChanges
	}{
		{`{"local_port":81}`, request, response},
		{`{"request_headers":{"X-Env":"dev","Cookie":null}}`, wire.ChangeHeaders(map[string]string{"X-Env": "dev", "Cookie": ""}), response},
		{`{"response_headers":{}}`, wire.ChangeHeaders(map[string]string{"X-Env": "dev", "Cookie": ""}), wire.HeaderChanges{}},
		{`{"request_headers":null}`, wire.ChangeHeaders(map[string]string{"X-Env": "dev", "Cookie": ""}), wire.HeaderChanges{}},
		{`{"type":"http"}`, wire.ChangeHeaders(map[string]string{"X-Env": "dev", "Cookie": ""}), wire.HeaderChanges{}},
		{`{"type":"tls"}`, wire.HeaderChanges{}, wire.HeaderChanges{}},
		{`{"type":"https","request_headers":{"X-Api-Key":"geheim"}}`, wire.ChangeHeaders(map[string]string{"X-Api-Key": "geheim"}), wire.HeaderChanges{}},
	} {
		var patch definition.Patch
		if err := json.Unmarshal([]byte(step.patch), &patch); err != nil {
			t.Fatal(err)
		}
		got, err := a.Change(t.Context(), web.ID, patch)
		if err != nil || got.RequestHeaders != step.request || got.ResponseHeaders != step.response {
			t.Errorf("%s: got %v, %v, %v", step.patch, got.RequestHeaders, got.ResponseHeaders, err)
		}
		if c := claimed(); c.RequestHeaders != step.request || c.ResponseHeaders != step.response {
			t.Errorf("%s: claimed %v, %v", step.patch, c.RequestHeaders, c.ResponseHeaders)
		}
	}
	var no *refusal.Error
	refused := wire.ChangeHeaders(map[string]string{"Content-Length": "1"})
	if _, err := a.Change(t.Context(), web.ID, definition.Patch{RequestHeaders: &refused}); !errors.As(err, &no) || no.Field != "request_headers" ||
		no.Message != "request_headers: Content-Length cannot be changed: it belongs to the connection, or the relay sets it" {
		t.Errorf("got %v", err)
	}
	// The second time they are what the state folder has.
	had, err := a.state.Load()
	saved := had.Tunnels
	if err != nil || len(saved.Tunnels) != 1 || saved.Tunnels[0].Spec.RequestHeaders != wire.ChangeHeaders(map[string]string{"X-Api-Key": "geheim"}) {
		t.Errorf("saved %+v, %v", saved, err)
	}
	if strings.Contains(log.String(), "geheim") {
		t.Errorf("a value is logged: %s", log.String())
	}
}

// TestARelayThatKnowsNoHeadersIsNotAsked: it would serve visitors without the
// changes, and the daemon would say that all is well.
func TestARelayThatKnowsNoHeadersIsNotAsked(t *testing.T) {
	r := newFakeRelay(t)
	r.does("another")
	a, _ := configured(t, r, Config{})
	web := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	const want = "the relay refused: the relay is too old to change headers; publish the tunnel without header changes, or ask its operator to update it"
	changes := wire.ChangeHeaders(map[string]string{"X-Env": "prod"})
	var no *refusal.Error
	if _, err := a.Change(t.Context(), web.ID, definition.Patch{RequestHeaders: &changes}); !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || no.Field != "request_headers" || no.Message != want {
		t.Errorf("change: got %#v", err)
	}
	if got, _ := a.Tunnel(web.ID); got.State != TunnelRunning || !got.RequestHeaders.IsZero() {
		t.Errorf("got %+v, want it as it was", got)
	}
	if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 81, ResponseHeaders: changes}); !errors.As(err, &no) || no.Field != "response_headers" || no.Message != want {
		t.Errorf("create: got %#v", err)
	}
	// One that is declared is there, and says why it does not run.
	if err := a.Declare(t.Context(), []definition.Tunnel{{Name: "declared", LocalPort: 82, ResponseHeaders: changes}}); err != nil {
		t.Fatal(err)
	}
	id := declaredID("declared")
	eventually(t, "the declared tunnel fails", func() bool {
		got, _ := a.Tunnel(id)
		return got.State == TunnelFailed && strings.Contains(got.Error, "too old to change headers")
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, asked := r.claims[id]; asked || !r.claims[web.ID].RequestHeaders.IsZero() {
		t.Errorf("claimed %+v", c)
	}
}
