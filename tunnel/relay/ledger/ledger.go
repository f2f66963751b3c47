// Package ledger makes sure that every change gets into the audit log. Entries that the
// log cannot take now wait on this node's disk until it can, even across a restart. So a
// client can be revoked while the log is unavailable.
package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"adit/internal/atomicfile"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/auditlog"
	"adit/tunnel/relay/store/bucket"
)

// Folder is inside the data folder. It contains a file for each change in progress, and
// for each line that waits for the audit log.
const Folder = "audit"

const (
	// mostLate is the maximum number of lines that wait for the audit log. From half of
	// it on, no change may begin, so that there is room for changes in progress and for
	// sign-ins.
	mostLate = 10_000
	logWait  = 5 * time.Second
	retry    = 5 * time.Second
	// actionUnfinished is the action of a change that began and whose end is unknown,
	// because the relay ended in the meantime or the store did not answer. Somebody has
	// to look up whether it was made.
	actionUnfinished = "change.unfinished"
)

// ErrFull refuses a change because too many lines wait for the audit log.
var ErrFull = errors.New("too many changes wait for the audit log")

// errOthersWait is why a change is not written immediately although the audit log would
// accept it.
var errOthersWait = errors.New("others wait before it")

// Log is the audit log: *auditlog.Log.
type Log interface {
	Append(ctx context.Context, c audit.Change) (audit.Entry, error)
	AppendLate(ctx context.Context, v auditlog.Late) (audit.Entry, error)
}

// Config contains what a Ledger is made of.
type Config struct {
	DataDir string // contains the ledger's folder
	Node    string // where changes are made
	Audit   Log
	Written func(audit.Entry) // receives the entries that the audit log has accepted
	Wait    time.Duration     // for the audit log; if zero, 5 seconds
	Most    int               // maximum number of waiting lines; if zero, 10,000
	Log     *slog.Logger
}

// Ledger keeps what must get into the audit log.
type Ledger struct {
	cfg  Config
	dir  string
	wake chan struct{} // a line is waiting; room for one

	mu   sync.Mutex
	next uint64
	late []string // names of the files of waiting lines, oldest first
}

// Open reads what an earlier run has left behind.
func Open(c Config) (*Ledger, error) {
	c.Wait, c.Most = cmp.Or(c.Wait, logWait), cmp.Or(c.Most, mostLate)
	l := &Ledger{cfg: c, dir: filepath.Join(c.DataDir, Folder), wake: make(chan struct{}, 1)}
	list, err := os.ReadDir(l.dir) // by name, so oldest first
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read what waits for the audit log: %w", err)
	}
	for _, f := range list {
		if strings.HasSuffix(f.Name(), ".json") {
			l.late = append(l.late, f.Name())
		}
	}
	if len(l.late) > 0 {
		l.wake <- struct{}{}
	}
	return l, nil
}

// Waiting returns how many lines wait for the audit log.
func (l *Ledger) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.late)
}

// keep writes a line to disk.
func (l *Ledger) keep(v auditlog.Late) (name string, err error) {
	l.mu.Lock()
	l.next++
	name = fmt.Sprintf("%s-%08d-%s.json", time.Now().UTC().Format("20060102T150405.000000000"), l.next, rand.Text()[:8])
	l.mu.Unlock()
	return name, l.write(name, v)
}

func (l *Ledger) write(name string, v auditlog.Late) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(l.dir, name), text, 0o600)
}

// read reads a line from disk.
func (l *Ledger) read(name string) (v auditlog.Late, err error) {
	text, err := os.ReadFile(filepath.Join(l.dir, name))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

// add writes a line to disk and queues it for the audit log, unless too many are waiting.
func (l *Ledger) add(v auditlog.Late) error {
	if n := l.Waiting(); n >= l.cfg.Most {
		return fmt.Errorf("%d lines wait for the audit log already", n)
	}
	name, err := l.keep(v)
	if err != nil {
		return err
	}
	l.wait(name)
	return nil
}

// wait queues a line on disk for the audit log.
func (l *Ledger) wait(name string) {
	l.mu.Lock()
	l.late = append(l.late, name)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Ledger) remove(name string) {
	_ = os.Remove(filepath.Join(l.dir, name)) // at worst, it becomes a line of its own after a restart
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.late, name); i >= 0 {
		l.late = slices.Delete(l.late, i, i+1)
	}
}

// Begin must be called before ctx's actor changes something. what describes the request.
// If too many lines are already waiting, the change is refused with ErrFull. end must be
// called with the result once everything that the change has to Record is recorded. If
// the relay dies before that, or it is unknown whether the change was made, the audit log
// will say that it was begun.
func (l *Ledger) Begin(ctx context.Context, what string) (end func(error), err error) {
	if n := l.Waiting(); n >= l.cfg.Most/2 {
		l.cfg.Log.Warn("a change was refused, as too many wait for the audit log", "change", what, "waiting", n)
		return nil, ErrFull
	}
	name, err := l.keep(auditlog.Late{
		At: time.Now(), Node: l.cfg.Node, Actor: audit.ActorOf(ctx), Action: actionUnfinished, Target: what,
	})
	if err != nil { // a full disk must not keep an operator from revoking a client
		l.cfg.Log.Warn("a change is not noted before it is made", "error", err)
		return func(error) {}, nil
	}
	return func(err error) {
		if bucket.IsAway(err) || errors.Is(err, context.Canceled) {
			l.wait(name)
		} else {
			l.remove(name)
		}
	}, nil
}

// Record writes a completed change into the audit log, in the name of ctx's actor. If the
// log does not accept it now, it waits on disk until the log does.
func (l *Ledger) Record(ctx context.Context, action, target string, detail any) {
	// The change stands even if whoever asked for it has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Wait)
	defer cancel()
	at, c := time.Now(), audit.Change{Node: l.cfg.Node, Actor: audit.ActorOf(ctx), Action: action, Target: target, Detail: detail}
	first, err := audit.Next(0, audit.Root, at, c)
	if err != nil {
		l.cfg.Log.Error("a change is not in the audit log", "action", action, "target", target, "error", err)
		return
	}
	late := auditlog.Late{At: at, Node: c.Node, Actor: c.Actor, Action: action, Target: target, Detail: first.Detail}
	err = errOthersWait
	if l.Waiting() == 0 {
		var e audit.Entry
		if e, err = l.cfg.Audit.Append(ctx, c); err == nil {
			l.cfg.Written(e)
			return
		}
		if e.Seq > 0 {
			late.Tried = &e
		}
	}
	if keepErr := l.add(late); keepErr != nil {
		l.cfg.Log.Error("a change is not in the audit log", "action", action, "target", target, "error", errors.Join(err, keepErr))
		return
	}
	l.cfg.Log.Warn("a change waits for the audit log", "action", action, "target", target, "error", err)
}

// Run writes waiting lines as soon as the audit log accepts them, until ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		select {
		case <-l.wake:
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if !l.writeLate(ctx) {
			pause.Reset(retry)
		}
	}
}

// writeLate writes the waiting lines, and reports whether none are left.
func (l *Ledger) writeLate(ctx context.Context) bool {
	l.mu.Lock()
	list := slices.Clone(l.late)
	l.mu.Unlock()
	for _, name := range list {
		v, err := l.read(name)
		if err != nil { // only a person can say what it was
			l.cfg.Log.Error("a line that waits for the audit log cannot be read; it stays in its file", "file", name, "error", err)
			l.mu.Lock()
			if i := slices.Index(l.late, name); i >= 0 {
				l.late = slices.Delete(l.late, i, i+1)
			}
			l.mu.Unlock()
			continue
		}
		short, cancel := context.WithTimeout(ctx, l.cfg.Wait)
		e, err := l.cfg.Audit.AppendLate(short, v)
		cancel()
		if err != nil {
			l.cfg.Log.Debug("the audit log is away yet", "error", err)
			if e.Seq > 0 && (v.Tried == nil || v.Tried.Hash != e.Hash) { // the log may have the entry: the next attempt checks
				v.Tried = &e
				if err := l.write(name, v); err != nil {
					l.cfg.Log.Warn("a line that waits for the audit log may be there twice", "file", name, "error", err)
				}
			}
			return false
		}
		l.remove(name)
		l.cfg.Log.Info("a line that waited is in the audit log", "action", v.Action, "target", v.Target, "entry", e.Seq)
		if e.Seq > 0 {
			l.cfg.Written(e)
		}
	}
	return l.Waiting() == 0
}
