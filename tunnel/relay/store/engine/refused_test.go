package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"adit/internal/freeport"
	"adit/tunnel/relay/store/natstest"
)

// door is who is let in to a server, and how often one was not.
type door struct {
	shut   atomic.Bool
	turned atomic.Int32
}

func (d *door) Check(server.ClientAuthentication) bool {
	if d.shut.Load() {
		d.turned.Add(1)
		return false
	}
	return true
}

// told is a log.
type told struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *told) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *told) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// run runs a server, as change makes it.
func run(t *testing.T, change func(*server.Options)) (ns *server.Server, url string) {
	t.Helper()
	opts := natstest.Options("n0", t.TempDir(), "127.0.0.1", freeport.Get(t), 0, nil)
	change(&opts)
	ns, err := server.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(natstest.Ready) {
		t.Fatal("the NATS server did not start")
	}
	return ns, ns.ClientURL()
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(natstest.Ready); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// TestRefusedCredentialsAreTriedAgain has a cluster refuse a node temporarily, as while its
// credentials are being changed.
func TestRefusedCredentialsAreTriedAgain(t *testing.T) {
	var d door
	ns, url := run(t, func(o *server.Options) { o.CustomClientAuthentication = &d })
	log := new(told)
	e, err := Open(Config{Dir: t.TempDir(), URLs: []string{url}, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	running.Go(func() { e.Run(ctx, func() {}) })
	d.shut.Store(true)
	all, err := ns.Connz(nil)
	if err != nil || len(all.Conns) != 1 {
		t.Fatal(all, err)
	}
	if err := ns.DisconnectClientByID(all.Conns[0].Cid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is refused, again and again, or gives up", func() bool { return d.turned.Load() >= 4 || e.conn.IsClosed() })
	d.shut.Store(false)
	if e.conn.IsClosed() {
		t.Fatal("it has given up")
	}
	eventually(t, "it is back", e.Connected)
	if n := log.count("authorization violation"); n != 1 {
		t.Errorf("the log says %d times that it was refused", n)
	}
}
