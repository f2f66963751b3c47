// Package engine provides the JetStream in which the store keeps its state: a server inside
// the process by default, with every write on disk before it is acknowledged, or an external
// cluster, behind the same API. It locks the data folder, creates buckets and streams with the
// right number of replicas, and restores a server whose disk was full. Its callers decide what
// is kept.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/internal/lockfile"
	_ "adit/tunnel/relay/store/engine/quiet"
)

const (
	lockFile     = "relay.lock"
	maxStoreSize = 64 << 30
	startWait    = 30 * time.Second
	clusterWait  = 55 * time.Second // the cluster may have just started, too
	lateWait     = 20 * time.Second // for what a relay can start without
)

// ErrLocked is returned by Open if the data folder is in use.
var ErrLocked = errors.New("another relay uses the data folder")

// Config says where an engine is.
type Config struct {
	// Dir is the relay's data folder; it is locked while the engine is open.
	Dir string
	// URLs are the URLs of an external NATS cluster. If empty, a server runs in this process.
	URLs []string
	// Credentials, CA, Cert and Key are files for connecting to an external cluster; each may
	// be empty.
	Credentials, CA, Cert, Key string
	// Replicas is how many servers of an external cluster keep each value. If zero, 3 if the
	// cluster has that many servers, else 1, but never fewer than before.
	Replicas int
	Log      *slog.Logger
}

// Engine is an open engine. All methods except Close are safe for concurrent use.
type Engine struct {
	cfg    Config
	log    *slog.Logger
	lock   *lockfile.Lock
	server *embedded             // nil with an external cluster
	broken chan struct{}         // a write by server has failed; capacity 1
	full   atomic.Bool           // its files have not been opened again since then
	back   chan struct{}         // the engine can be reached again; capacity 1
	denied atomic.Pointer[error] // the last thing that the cluster denied this user
	conn   *nats.Conn
	js     jetstream.JetStream
}

// Open locks the data folder, and starts the server in this process or connects to the
// cluster.
func Open(cfg Config) (*Engine, error) {
	e := &Engine{cfg: cfg, log: cfg.Log, broken: make(chan struct{}, 1), back: make(chan struct{}, 1)}
	if err := e.open(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Engine) open() (err error) {
	cfg := e.cfg
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		advice := "make it, or set another data_dir"
		if errors.Is(err, fs.ErrPermission) {
			who := "the user that the relay runs as"
			if id := os.Getuid(); id >= 0 { // some systems have no user IDs
				who += fmt.Sprintf(" (number %d)", id)
			}
			advice = "make it and give it to " + who + ", or set another data_dir"
		}
		return &folderError{cfg.Dir, "cannot be made", advice, err}
	}
	if e.lock, err = lockfile.Take(filepath.Join(cfg.Dir, lockFile)); err != nil {
		switch {
		case errors.Is(err, lockfile.ErrHeld):
			return fmt.Errorf("open data folder %s: %w; end that one, or set another data_dir", cfg.Dir, ErrLocked)
		case errors.Is(err, fs.ErrPermission):
			return &folderError{cfg.Dir, "may not be written by the user that the relay runs as", "give it the right to, or set another data_dir", err}
		case errors.Is(err, syscall.EROFS):
			return &folderError{cfg.Dir, "may not be written by anybody", "mount it so that it may, or set another data_dir", err}
		}
		return fmt.Errorf("open data folder %s: %w", cfg.Dir, err)
	}
	if len(cfg.URLs) == 0 {
		err = e.embed()
	} else {
		err = e.connect()
	}
	if err != nil {
		return err
	}
	if e.js, err = jetstream.New(e.conn); err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	return nil
}

func (e *Engine) embed() error {
	e.server = &embedded{dir: e.cfg.Dir, log: &serverLog{e.log, e.heard}}
	err := e.server.begin()
	if err != nil {
		return err
	}
	e.conn, err = nats.Connect("", nats.InProcessServer(e.server), nats.Name("adit relay"), nats.MaxReconnects(-1),
		nats.Timeout(startWait), // it answers as soon as the machine is not too busy
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1),
		nats.ReconnectHandler(e.reconnected))
	if err != nil {
		return fmt.Errorf("connect to the store's server: %w", err)
	}
	return nil
}

func (e *Engine) connect() error {
	cfg := e.cfg
	refused := false // since the last connection; handlers are called one at a time
	opts := []nats.Option{
		nats.Name("adit relay"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(5 * time.Second),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), // the connection to a dead server may stay open
		nats.ReconnectBufSize(-1),   // a write that was reported as failed must not be made minutes later
		nats.IgnoreAuthErrorAbort(), // refused credentials may be corrected
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				e.log.Warn("store is away", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if isAuthorization(err) && !refused {
				refused = true
				e.log.Warn("the store refuses this node; it tries again", "error", err)
				return
			}
			if errors.Is(err, nats.ErrPermissionViolation) {
				e.denied.Store(&err)
			}
			e.log.Debug("store", "error", err)
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			refused = false
			e.log.Info("store is back", "server", c.ConnectedUrlRedacted())
			e.reconnected(c)
		}),
	}
	conn, err := nats.Connect(strings.Join(cfg.URLs, ","), append(opts, e.identity()...)...)
	if err != nil {
		return fmt.Errorf("connect to NATS at %s: %w%s", redacted(cfg.URLs), err, hint(err))
	}
	e.conn = conn
	return nil
}

// identity returns the options that say who this node is and whom it trusts.
func (e *Engine) identity() (opts []nats.Option) {
	cfg := e.cfg
	if cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.CA != "" {
		opts = append(opts, nats.RootCAs(cfg.CA))
	}
	if cfg.Cert != "" {
		opts = append(opts, nats.ClientCert(cfg.Cert, cfg.Key))
	}
	return opts
}

// reconnected is called when the engine can be reached again and all subscriptions are
// restored.
func (e *Engine) reconnected(*nats.Conn) {
	select {
	case e.back <- struct{}{}:
	default:
	}
}

// Run does the engine's background work until ctx ends. It calls again whenever watches may
// have gone silent and must be started again. again must not block.
func (e *Engine) Run(ctx context.Context, again func()) {
	if e.server != nil {
		e.heal(ctx, again)
		return
	}
	look := time.NewTicker(awayLook)
	defer look.Stop()
	var looking sync.WaitGroup
	defer looking.Wait()
	found := make(chan bool, 1)
	for busy, told := false, false; ; {
		select {
		case <-e.back:
			told = false
			again()
		case <-look.C:
			if told = told && !e.Connected(); !told && !busy && !e.Connected() {
				busy = true
				looking.Go(func() { found <- e.tellDistrust(ctx) })
			}
		case told = <-found:
			busy = false
		case <-ctx.Done():
			return
		}
	}
}

// Alone reports whether the server is in this process, so that there are no other nodes.
func (e *Engine) Alone() bool { return e.server != nil }

// Patience returns how long opening everything that is kept may take.
func (e *Engine) Patience() time.Duration {
	if e.server == nil {
		return clusterWait
	}
	return startWait
}

// JetStream returns the interface for requests to the engine.
func (e *Engine) JetStream() jetstream.JetStream { return e.js }

// Connected reports whether the engine can currently be reached.
func (e *Engine) Connected() bool { return e.conn.Status() == nats.CONNECTED }

// Close stops the engine and unlocks its folder. Everything that uses the engine must have
// stopped before.
func (e *Engine) Close() error {
	if e.conn != nil {
		e.conn.Close()
	}
	if e.server != nil {
		e.server.end()
	}
	if e.lock != nil {
		return e.lock.Release()
	}
	return nil
}

// serverLog passes on the embedded server's warnings and errors.
type serverLog struct {
	log   *slog.Logger
	heard func(text string) // called with errors
}

func (l *serverLog) Noticef(string, ...any) {}
func (l *serverLog) Debugf(string, ...any)  {}
func (l *serverLog) Tracef(string, ...any)  {}
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("store", "detail", fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error("store", "detail", text)
	l.heard(text)
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error("store", "detail", fmt.Sprintf(format, v...))
}
