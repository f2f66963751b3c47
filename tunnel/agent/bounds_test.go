package agent

import (
	"context"
	"testing"

	"adit/tunnel/link"
)

// TestSessionsAreBoundedAsTheAgentIs: by what its machine has, and not by defaults alone.
func TestSessionsAreBoundedAsTheAgentIs(t *testing.T) {
	r := newFakeRelay(t)
	dialled := make(chan link.DialConfig, 8)
	a, _ := startAgent(t, Config{Visitors: 2000, Unread: 5 << 20, Dial: func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
		select {
		case dialled <- cfg:
		default:
		}
		return link.Dial(ctx, cfg)
	}})
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	if got := <-dialled; got.MaxStreams != 2000 || got.Memory != 5<<20 {
		t.Errorf("a session may have %d streams, and %d bytes may wait in it", got.MaxStreams, got.Memory)
	}
}
