package nodes

import (
	"context"
	"net"
	"testing"
	"time"

	"adit/tunnel/link"
)

// fullLocal is a node whose agents send endlessly.
type fullLocal struct{ echoLocal }

func (fullLocal) OpenStream(context.Context, string) (link.Stream, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		for piece := make([]byte, 32<<10); ; {
			if _, err := there.Write(piece); err != nil {
				return
			}
		}
	}()
	return pipeStream{here}, nil
}

// TestVisitorsWhoStandStillAreOfManyAgents makes more visitors of another node's agents
// stop reading for a while than one agent may have. They are not cut off, since a session
// between nodes is shared by all agents.
func TestVisitorsWhoStandStillAreOfManyAgents(t *testing.T) {
	const visitors, each = 300, 256 << 10
	authority, err := link.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	var far knowing
	here, there := beginNode(t, authority, "here", fullLocal{}, &far, func(*Mesh) {}), beginNode(t, authority, "there", fullLocal{}, &far, func(*Mesh) {})
	there.AgentUp(Agent{Session: "s1", ClientID: "c1", Instance: "i1"})
	there.TunnelUp(Tunnel{Session: "s1", Key: "k"})
	here.Know([]Node{{ID: "there", Address: there.Addr().String()}})
	soon(t, "the other node's agent is known", func() bool { return len(far.served()) == 1 })
	agent := far.served()[0]
	var open []link.Stream
	for range visitors {
		st, err := agent.OpenStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Reset)
		st.SetDeadline(time.Now().Add(time.Minute))
		if _, err := st.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		open = append(open, st)
	}
	soon(t, "most of what they asked for has come", func() bool { return agent.Stats().BytesReceived > visitors*each*9/10 })
	for i, st := range open {
		if _, err := st.Read(make([]byte, 1)); err != nil {
			t.Fatalf("visitor %d: %v", i, err)
		}
	}
}
