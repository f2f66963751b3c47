package relay

import (
	"context"
	"errors"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// TestAgentsComeByTheVisitorsPort uses an agent whose network allows only the web,
// another at the relay's own port, and visitors of both.
func TestAgentsComeByTheVisitorsPort(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	saved := transport
	transport = link.TLS
	defer func() { transport = saved }()
	token := s.token
	token.Relay = s.Addrs().HTTPS
	a := connect(t, token, "i2")
	inner := a.mustClaim("inner", wire.Claim{Type: wire.TypeHTTPS, Domain: "inner"}, startOrigin(t, text("from inside")))
	for url, want := range map[string]string{s.https: "hello", inner.PublicURL: "from inside"} {
		if status, body := get(t, s.visitor, url); status != 200 || body != want {
			t.Errorf("%s: status %d, %q", url, status, body)
		}
	}
	// The two names are one host for HTTP/2, whose connection may serve both.
	if n := s.edge.Figures().Connections; n < 1 || n > 2 {
		t.Errorf("%d visitors are counted: an agent is none", n)
	}
	// A relay that stops tells both, and waits for neither.
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	for _, agent := range []*fakeAgent{s.agent, a} {
		select {
		case <-agent.session.Done():
		case <-time.After(patience):
			t.Error("a session outlives its relay")
		}
	}
}

func TestVisitorsPortCanBeTheirsAlone(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.AgentsByHTTPS = false
	s := startSite(t, cfg, text("hello"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := link.Dial(ctx, link.DialConfig{Relay: s.Addrs().HTTPS, Fingerprint: s.token.Fingerprint, Transport: link.TLS})
	if session != nil || !errors.Is(err, link.ErrNoRelay) {
		t.Errorf("got %v, %v, want ErrNoRelay", session, err)
	}
	if status, body := get(t, s.visitor, s.https); status != 200 || body != "hello" {
		t.Errorf("a visitor: status %d, %q", status, body)
	}
}
