package nodes

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"adit/tunnel/link"
)

// fullLocal is a node whose agents send without end.
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

// TestVisitorsWhoStandStillAreOfManyAgents has more visitors of another node's agents read
// nothing for a while than one agent may have: they are not cut, since a session between
// nodes is that of all agents.
func TestVisitorsWhoStandStillAreOfManyAgents(t *testing.T) {
	const visitors, each = 300, 256 << 10
	authority, err := link.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	var far knowing
	begin := func(id string) *Mesh {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(Config{
			ID: id, Fingerprint: authority.Fingerprint(), Listener: l, Local: fullLocal{}, Far: &far,
			Certificate: sync.OnceValues(func() (*tls.Certificate, error) {
				cert, err := authority.IssueNode(id)
				return &cert, err
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return m
	}
	here, there := begin("here"), begin("there")
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
