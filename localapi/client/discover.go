package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Runtime is what a running daemon tells about itself in its state folder.
type Runtime struct {
	ListenAddr  string    `json:"listen_addr"`
	ConnectAddr string    `json:"connect_addr"` // ListenAddr with a wildcard made loopback
	APIPrefix   string    `json:"api_prefix"`
	HealthPath  string    `json:"health_path"`
	PID         int       `json:"pid"`
	StartedAt   time.Time `json:"started_at"`
}

// probeTimeout is how long a daemon has to answer the probe. Where none is, the
// system refuses at once; a machine that is busy is slow.
const probeTimeout = 10 * time.Second

// Discover finds the daemon that keeps its state in stateDir: it reads the
// folder's runtime.json, and asks whether who is named there answers, because a
// killed daemon leaves the file behind. If none runs, the error matches
// ErrNotRunning.
func Discover(ctx context.Context, stateDir string, opts ...Option) (*Client, Runtime, error) {
	path := filepath.Join(stateDir, "runtime.json")
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
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := c.Health(probing); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = &unreachable{c.base, err}
		}
		return nil, r, err
	}
	return c, r, nil
}
