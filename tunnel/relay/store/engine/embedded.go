package engine

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// embedded is the server in this process. Every begin starts a new one; connections made with
// InProcessConn are then made again.
type embedded struct {
	dir string // the relay's data folder
	log server.Logger

	mu  sync.Mutex
	now *server.Server // nil before the first begin
}

// begin starts a server, which reads its files, and replaces the previous one.
func (s *embedded) begin() error {
	s.end()
	ns, err := server.NewServer(&server.Options{
		ServerName: "adit-relay",
		JetStream:  true,
		StoreDir:   filepath.Join(s.dir, "nats"),
		DontListen: true,
		SyncAlways: true,
		NoSigs:     true,
		NoLog:      true,
		MaxPayload: 1 << 20,

		JetStreamMaxMemory: 16 << 20,
		JetStreamMaxStore:  maxStoreSize,
	})
	if err != nil {
		return fmt.Errorf("set up the store's server: %w", err)
	}
	ns.SetLoggerV2(s.log, false, false, false)
	ns.Start()
	s.mu.Lock()
	s.now = ns
	s.mu.Unlock()
	if !ns.ReadyForConnections(startWait) || !ns.JetStreamEnabled() {
		return errors.New("the store's server did not start; its files in the data folder may be damaged")
	}
	return nil
}

// end stops the server, if there is one, and waits until its files are closed.
func (s *embedded) end() {
	if ns := s.server(); ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}

// InProcessConn connects to the server that is running now.
func (s *embedded) InProcessConn() (net.Conn, error) { return s.server().InProcessConn() }

func (s *embedded) server() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}
