// Package natstest runs NATS servers for tests as an operator would run them beside the relay:
// inside the test process, alone or as a cluster. It also provides buckets that misbehave.
package natstest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"adit/internal/freeport"
)

// Ready is how long a server may take to start, and a cluster to find itself.
const Ready = 60 * time.Second

// Server is one server; Stop and Start are its restart.
type Server struct {
	tb   testing.TB
	opts server.Options
	ns   *server.Server
}

// Options is what one server of a cluster is started with. Routes are of the
// others; empty: it is alone.
func Options(name, dir, host string, port, route int, routes []string) server.Options {
	o := server.Options{
		ServerName: name, Host: host, Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		SyncAlways: true, // as the embedded server
		// Else it is a share of what the disk has free.
		JetStreamMaxStore: 64 << 30,
	}
	if len(routes) > 0 {
		o.Cluster = server.ClusterOpts{Name: "adit", Host: host, Port: route}
		for _, r := range routes {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
		}
	}
	return o
}

// Start runs one server alone on a port that stays its own while it restarts.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, Options("n0", tb.TempDir(), "127.0.0.1", freeport.Get(tb), 0, nil))
}

// StartSmall is Start with room for so many bytes.
func StartSmall(tb testing.TB, room int64) *Server {
	tb.Helper()
	opts := Options("n0", tb.TempDir(), "127.0.0.1", freeport.Get(tb), 0, nil)
	opts.JetStreamMaxStore = room
	return start(tb, opts)
}

func start(tb testing.TB, opts server.Options) *Server {
	tb.Helper()
	s := &Server{tb: tb, opts: opts}
	s.Start()
	return s
}

// Cluster runs n servers that know each other.
func Cluster(tb testing.TB, n int) []*Server {
	tb.Helper()
	dir := tb.TempDir()
	var routes []string
	var ports []int
	for range n {
		port := freeport.Get(tb)
		ports = append(ports, port)
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", port))
	}
	var all []*Server
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		s := &Server{tb: tb, opts: Options(name, filepath.Join(dir, name), "127.0.0.1", freeport.Get(tb), ports[i], routes)}
		all = append(all, s)
		s.begin()
	}
	for _, s := range all {
		s.await()
	}
	deadline := time.Now().Add(Ready)
	for ; ; time.Sleep(20 * time.Millisecond) {
		led := false
		for _, s := range all {
			led = led || s.ns.JetStreamIsLeader()
		}
		if led {
			return all
		}
		if time.Now().After(deadline) {
			tb.Fatal("the cluster finds no leader")
		}
	}
}

// URL is where clients connect.
func (s *Server) URL() string { return fmt.Sprintf("nats://%s:%d", s.opts.Host, s.opts.Port) }

// URLs are where the clients of a cluster connect.
func URLs(all []*Server) []string {
	var urls []string
	for _, s := range all {
		urls = append(urls, s.URL())
	}
	return urls
}

func (s *Server) begin() {
	s.tb.Helper()
	opts := s.opts
	ns, err := server.NewServer(&opts)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.ns = ns
	ns.Start()
	s.tb.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
}

func (s *Server) await() {
	s.tb.Helper()
	if !s.ns.ReadyForConnections(Ready) {
		s.tb.Fatal("the NATS server did not start")
	}
}

// Start starts the server again where it was.
func (s *Server) Start() {
	s.tb.Helper()
	s.begin()
	s.await()
}

// Stop ends the server; what it acknowledged is on the disk.
func (s *Server) Stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// Empty has the server lose all that it has on its disk.
func (s *Server) Empty() {
	s.tb.Helper()
	s.Stop()
	if err := os.RemoveAll(s.opts.StoreDir); err != nil {
		s.tb.Fatal(err)
	}
	s.Start()
}

// Snapshot notes what the server has on its disk. back has it lose what came later, as
// one whose machine lost its power before it was synced.
func (s *Server) Snapshot() (back func()) {
	s.tb.Helper()
	was := filepath.Join(s.tb.TempDir(), "snapshot")
	copied := func(from, to string) {
		s.Stop()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			s.tb.Fatal(err)
		}
		s.Start()
	}
	copied(s.opts.StoreDir, was)
	return func() { copied(was, s.opts.StoreDir) }
}

// Refused is how many requests of JetStream's API the server has answered with
// an error.
func (s *Server) Refused() uint64 {
	s.tb.Helper()
	info, err := s.ns.Jsz(nil)
	if err != nil {
		s.tb.Fatal(err)
	}
	return info.API.Errors
}
