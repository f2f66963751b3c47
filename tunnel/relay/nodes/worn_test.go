package nodes

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// echoLocal is a node whose agents send back what they receive.
type echoLocal struct{}

func (echoLocal) OpenStream(context.Context, string) (link.Stream, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		io.Copy(there, there)
	}()
	return pipeStream{here}, nil
}
func (echoLocal) Flow(string, uint32, func([]byte), func()) Flow { return nil }
func (echoLocal) Access(string, []wire.Access) bool              { return true }

type pipeStream struct{ net.Conn }

func (s pipeStream) CloseWrite() error { return s.Close() }
func (s pipeStream) Reset()            { s.Close() }
func (pipeStream) Quiet() bool         { return false }

// knowing records what another node reports.
type knowing struct {
	mu       sync.Mutex
	sessions []*Session
	tunnels  map[*Session]int
}

func (k *knowing) SessionUp(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions = append(k.sessions, s)
}

func (k *knowing) SessionDown(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions = slices.DeleteFunc(k.sessions, func(o *Session) bool { return o == s })
}

func (k *knowing) TunnelUp(s *Session, _ Tunnel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tunnels == nil {
		k.tunnels = make(map[*Session]int)
	}
	k.tunnels[s]++
}
func (*knowing) TunnelDown(*Session, string) {}
func (*knowing) NodeChanged(string)          {}
func (*knowing) Changed([]byte)              {}
func (*knowing) Datagram(*Session, []byte)   {}

func (k *knowing) served() (list []*Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.sessions {
		if k.tunnels[s] > 0 {
			list = append(list, s)
		}
	}
	return list
}

// aging is a session that a test wears out.
type aging struct {
	link.Session
	worn *atomic.Pointer[aging]
}

func (s *aging) Stats() link.Stats {
	st := s.Session.Stats()
	st.Worn = s.worn.Load() == s
	return st
}

func (s *aging) ServeDatagrams(ctx context.Context, take func([][]byte)) error {
	return link.ServeDatagrams(ctx, s.Session, take)
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if ok() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// TestWornSessionBetweenNodesIsReplaced makes stream numbers run low while a visitor of
// one node is served by another.
func TestWornSessionBetweenNodesIsReplaced(t *testing.T) {
	authority, err := link.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	var far knowing
	var worn, newest atomic.Pointer[aging]
	here := beginNode(t, authority, "here", echoLocal{}, &far, func(m *Mesh) {
		m.wornLook = time.Millisecond
		m.dial = func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
			s, err := link.Dial(ctx, cfg)
			if err != nil {
				return nil, err
			}
			a := &aging{s, &worn}
			newest.Store(a)
			return a, nil
		}
	})
	there := beginNode(t, authority, "there", echoLocal{}, &far, func(*Mesh) {})
	there.AgentUp(Agent{Session: "s1", ClientID: "c1", Instance: "i1"})
	there.TunnelUp(Tunnel{Session: "s1", Key: "k"})
	here.Know([]Node{{ID: "there", Address: there.Addr().String()}})
	soon(t, "the other node's agent is known", func() bool { return len(far.served()) == 1 && here.Peers()["there"].Connected })

	there.AgentUp(Agent{Session: "s2", ClientID: "c1", Instance: "i2"})
	there.TunnelUp(Tunnel{Session: "s2", Key: "k"})
	soon(t, "another agent is known", func() bool { return len(far.served()) == 2 })
	if list := far.served(); !list[0].Before || list[1].Before {
		t.Errorf("who was there before is not told from who came: %t, %t", list[0].Before, list[1].Before)
	}
	there.AgentDown("s2")
	soon(t, "the other has gone", func() bool { return len(far.served()) == 1 })

	before := far.served()[0]
	visit := func(s *Session) link.Stream {
		t.Helper()
		st, err := s.OpenStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Reset)
		st.SetDeadline(time.Now().Add(time.Minute))
		return st
	}
	echoes := func(st link.Stream) {
		t.Helper()
		got := make([]byte, 5)
		if _, err := st.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(st, got); err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	stays := visit(before)
	echoes(stays)

	old := newest.Load()
	worn.Store(old)
	soon(t, "another session is in use alone", func() bool {
		list := far.served()
		if len(list) == 0 || !here.Peers()["there"].Connected {
			t.Fatal("the other node is lost meanwhile")
		}
		return len(list) == 1 && list[0] != before
	})
	echoes(stays)
	again := far.served()[0]
	echoes(visit(again))
	if !again.Before {
		t.Error("an agent is said to have come when the node was told of it by another session")
	}
	if err := old.Err(); err != nil {
		t.Fatalf("the session with a visitor has ended: %v", err)
	}
	stays.Reset()
	soon(t, "the worn session ends when its visitor has gone", func() bool { return old.Err() != nil && before.Err() != nil })
	there.AgentDown("s1")
	soon(t, "what the other node tells is heard", func() bool { return len(far.served()) == 0 })
}

// beginNode runs a node until the test ends; set changes it before.
func beginNode(t *testing.T, authority *link.Authority, id string, local Local, far Far, set func(*Mesh)) *Mesh {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{
		ID: id, Fingerprint: authority.Fingerprint(), Listener: l, Local: local, Far: far,
		Certificate: sync.OnceValues(func() (*tls.Certificate, error) {
			cert, err := authority.IssueNode(id)
			return &cert, err
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	set(m)
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
