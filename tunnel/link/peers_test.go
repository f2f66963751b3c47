package link

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"
)

// TestOnlyNodesDialNodes has a listener that asks for a node's certificate turn
// away all others: who has none, who has one for agents to see, and nodes of
// another authority.
func TestOnlyNodesDialNodes(t *testing.T) {
	ours, theirs := newTestAuthority(t), newTestAuthority(t)
	fingerprint := ours.Fingerprint()
	node, err := ours.IssueNode("n_1")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(ListenConfig{TCP: tcp, Certificate: node, Peers: &fingerprint})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	second, _ := ours.IssueNode("n_2")
	relay, _ := ours.Issue("relay.test")
	foreign, _ := theirs.IssueNode("n_2")
	dial := func(cfg DialConfig) (Session, error) {
		cfg.Relay, cfg.Fingerprint, cfg.Transport = l.Addr().String(), fingerprint, TLS
		cfg.Proxy = func(string) (*url.URL, error) { return nil, nil }
		return Dial(t.Context(), cfg)
	}
	s, err := dial(DialConfig{Certificate: &second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close("done")
	in, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close("done")
	for name, cfg := range map[string]DialConfig{
		"no certificate":    {},
		"one for agents":    {Certificate: &relay},
		"another authority": {Certificate: &foreign},
	} {
		s, err := dial(cfg)
		if err != nil {
			continue
		}
		// The client's side of TLS 1.3 is done before the server has looked.
		select {
		case <-s.Done():
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the session lives", name)
		}
		s.Close("done")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stranger was let in: %v", err)
	}
	if _, err := Listen(ListenConfig{Addr: "127.0.0.1:0", Certificate: node, Peers: &fingerprint}); err == nil {
		t.Error("peers were to be proved over DTLS")
	}
}
