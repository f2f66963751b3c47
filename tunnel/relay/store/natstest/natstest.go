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

// Ready is how long a server may take to start, and a cluster to form.
const Ready = 60 * time.Second

// Server is one server. Stop followed by Start restarts it.
type Server struct {
	tb   testing.TB
	opts server.Options
	ns   *server.Server
}

// Options returns the options for one server of a cluster. routes lists the other servers; if
// empty, the server is alone.
func Options(name, dir, host string, port, route int, routes []string) server.Options {
	o := server.Options{
		ServerName: name, Host: host, Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		SyncAlways: true, // like the embedded server
		// The default is a share of the free disk space.
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

// Start runs a single server on a port that it keeps across restarts.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, Options("n0", tb.TempDir(), "127.0.0.1", freeport.Get(tb), 0, nil))
}

// StartSmall is Start with a limit of room bytes of storage.
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

// Cluster runs n servers that form a cluster.
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

// URL returns the URL for clients.
func (s *Server) URL() string { return fmt.Sprintf("nats://%s:%d", s.opts.Host, s.opts.Port) }

// URLs returns the URLs for clients of a cluster.
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

// Start starts the server again with the same port and folder.
func (s *Server) Start() {
	s.tb.Helper()
	s.begin()
	s.await()
}

// Stop stops the server. Everything that it acknowledged is on disk.
func (s *Server) Stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// Empty makes the server lose everything on its disk.
func (s *Server) Empty() {
	s.tb.Helper()
	s.Stop()
	if err := os.RemoveAll(s.opts.StoreDir); err != nil {
		s.tb.Fatal(err)
	}
	s.Start()
}

// Snapshot records what the server has on disk. back makes the server lose everything later,
// like a machine that loses power before a sync.
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

// Refused returns how many requests to JetStream's API the server has answered with an error.
func (s *Server) Refused() uint64 {
	s.tb.Helper()
	info, err := s.ns.Jsz(nil)
	if err != nil {
		s.tb.Fatal(err)
	}
	return info.API.Errors
}
