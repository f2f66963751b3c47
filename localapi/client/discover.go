package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Runtime is what a running daemon publishes about itself in its state folder.
type Runtime struct {
	ListenAddr  string    `json:"listen_addr"`
	ConnectAddr string    `json:"connect_addr"` // ListenAddr with a wildcard made loopback
	APIPrefix   string    `json:"api_prefix"`
	HealthPath  string    `json:"health_path"`
	PID         int       `json:"pid"`
	StartedAt   time.Time `json:"started_at"`
}

// probeTimeout is how long a daemon has to answer the probe. If there is none, the system refuses
// at once, but a busy machine is slow.
var probeTimeout = 10 * time.Second // tests shorten it

// Discover finds the daemon that keeps its state in stateDir. It reads the folder's runtime.json
// and checks that the daemon named there answers, because a killed daemon leaves the file behind.
// If none answers, the error matches ErrNotRunning; if something is at its address nevertheless, it
// also matches ErrSilent or ErrForeign.
func Discover(ctx context.Context, stateDir string, opts ...Option) (*Client, Runtime, error) {
	path := filepath.Join(stateDir, "runtime.json")
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // to open a pipe may last for ever
		return nil, Runtime{}, fmt.Errorf("%w: %s is not a file", ErrNotRunning, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Runtime{}, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	defer f.Close()
	var r Runtime
	if err := json.NewDecoder(io.LimitReader(f, 64<<10)).Decode(&r); err != nil {
		return nil, Runtime{}, fmt.Errorf("%w: read %s: %w", ErrNotRunning, path, err)
	}
	host, port, err := net.SplitHostPort(r.ConnectAddr)
	if err != nil || host == "" || port == "" {
		return nil, Runtime{}, fmt.Errorf("%w: %s names no address", ErrNotRunning, path)
	}
	c := New("http://"+r.ConnectAddr, opts...)
	if _, err := c.Probe(ctx); err != nil {
		return nil, r, err
	}
	return c, r, nil
}
