package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"adit/internal/atomicfile"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store"
)

const (
	// ledgerFolder is in the data folder, and holds a file for each change under
	// way and for each line that waits for the audit log.
	ledgerFolder = "audit"
	// maxLate is how many lines wait for the audit log, at most; from half of it on
	// no change is begun, so that there is room for what is under way and for
	// sign-ins.
	maxLate    = 10_000
	auditWait  = 5 * time.Second
	auditRetry = 5 * time.Second
	// actionUnfinished is of a change that began and whose end nobody has seen: the
	// relay ended meanwhile, or the store gave no answer. Whether it was made is to be
	// looked up.
	actionUnfinished = "change.unfinished"
)

// ledger keeps what must get into the audit log: the line of a change that the log
// does not take lasts on this node's disk until it does. So a client can be
// revoked while the log is away.
type ledger struct {
	dir  string
	wake chan struct{} // a line waits; room for one

	mu   sync.Mutex
	next uint64
	late []string // names of the files of lines that wait, oldest first
}

// open reads what a run before has left.
func (l *ledger) open(dataDir string) error {
	l.dir, l.wake = filepath.Join(dataDir, ledgerFolder), make(chan struct{}, 1)
	list, err := os.ReadDir(l.dir) // by name, so oldest first
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what waits for the audit log: %w", err)
	}
	for _, f := range list {
		if strings.HasSuffix(f.Name(), ".json") {
			l.late = append(l.late, f.Name())
		}
	}
	if len(l.late) > 0 {
		l.wake <- struct{}{}
	}
	return nil
}

func (l *ledger) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.late)
}

// keep writes a line to the disk.
func (l *ledger) keep(v store.Late) (name string, err error) {
	l.mu.Lock()
	l.next++
	name = fmt.Sprintf("%s-%08d-%s.json", time.Now().UTC().Format("20060102T150405.000000000"), l.next, rand.Text()[:8])
	l.mu.Unlock()
	return name, l.write(name, v)
}

func (l *ledger) write(name string, v store.Late) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(l.dir, name), text, 0o600)
}

// read reads a line from the disk.
func (l *ledger) read(name string) (v store.Late, err error) {
	text, err := os.ReadFile(filepath.Join(l.dir, name))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

// add lets a line that was kept wait for the audit log, unless too many do.
func (l *ledger) add(v store.Late) error {
	if n := l.waiting(); n >= maxLate {
		return fmt.Errorf("%d lines wait for the audit log already", n)
	}
	name, err := l.keep(v)
	if err != nil {
		return err
	}
	l.wait(name)
	return nil
}

// wait lets a line that is on the disk wait for the audit log.
func (l *ledger) wait(name string) {
	l.mu.Lock()
	l.late = append(l.late, name)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *ledger) remove(name string) {
	_ = os.Remove(filepath.Join(l.dir, name)) // at worst it is a line of its own after a restart
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.late, name); i >= 0 {
		l.late = slices.Delete(l.late, i, i+1)
	}
}

// auditTime is how long the audit log is waited for.
func (r *Relay) auditTime() time.Duration { return cmp.Or(r.opts.auditWait, auditWait) }

// BeginChange is called before ctx's actor changes something, what being how it
// was asked for. The change is refused if too many lines wait already. end is
// called when all that the change must Record is recorded, with how it went; if the
// relay dies before, or it is not known whether the change was made, the audit log
// will say that it was begun.
func (r *Relay) BeginChange(ctx context.Context, what string) (end func(error), err error) {
	if n := r.ledger.waiting(); n >= maxLate/2 {
		r.log.Warn("a change was refused, as too many wait for the audit log", "change", what, "waiting", n)
		return nil, bad(http.StatusServiceUnavailable, "unavailable", "",
			"the audit log is away, and too many changes wait for it, so nothing was changed; try again in a moment")
	}
	name, err := r.ledger.keep(store.Late{
		At: time.Now(), Node: r.node, Actor: audit.ActorOf(ctx), Action: actionUnfinished, Target: what,
	})
	if err != nil { // a full disk must not keep an operator from revoking a client
		r.log.Warn("a change is not noted before it is made", "error", err)
		return func(error) {}, nil
	}
	return func(err error) {
		if store.IsAway(err) || errors.Is(err, context.Canceled) {
			r.ledger.wait(name)
		} else {
			r.ledger.remove(name)
		}
	}, nil
}

// Record writes a change that was made into the audit log, in the name of ctx's
// actor. What the log does not take now waits on the disk until it does.
func (r *Relay) Record(ctx context.Context, action, target string, detail any) {
	// The change stands even if who asked for it has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.auditTime())
	defer cancel()
	at, c := time.Now(), audit.Change{Node: r.node, Actor: audit.ActorOf(ctx), Action: action, Target: target, Detail: detail}
	first, err := audit.Next(0, audit.Root, at, c)
	if err != nil {
		r.log.Error("a change is not in the audit log", "action", action, "target", target, "error", err)
		return
	}
	late := store.Late{At: at, Node: c.Node, Actor: c.Actor, Action: action, Target: target, Detail: first.Detail}
	if r.ledger.waiting() == 0 {
		var e audit.Entry
		if e, err = r.store.Audit.Append(ctx, c); err == nil {
			r.sinks.audit(e)
			return
		}
		if e.Seq > 0 {
			late.Tried = &e
		}
	}
	if keepErr := r.ledger.add(late); keepErr != nil {
		r.log.Error("a change is not in the audit log", "action", action, "target", target, "error", errors.Join(err, keepErr))
		return
	}
	r.log.Warn("a change waits for the audit log", "action", action, "target", target, "error", err)
}

// runLedger writes the lines that wait as soon as the audit log takes them,
// until ctx ends.
func (r *Relay) runLedger(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		select {
		case <-r.ledger.wake:
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if !r.writeLate(ctx) {
			pause.Reset(auditRetry)
		}
	}
}

// writeLate writes what waits, and reports whether nothing does any more.
func (r *Relay) writeLate(ctx context.Context) bool {
	l := &r.ledger
	l.mu.Lock()
	list := slices.Clone(l.late)
	l.mu.Unlock()
	for _, name := range list {
		v, err := l.read(name)
		if err != nil { // nobody but a person can say what it was
			r.log.Error("a line that waits for the audit log cannot be read; it stays in its file", "file", name, "error", err)
			l.mu.Lock()
			if i := slices.Index(l.late, name); i >= 0 {
				l.late = slices.Delete(l.late, i, i+1)
			}
			l.mu.Unlock()
			continue
		}
		short, cancel := context.WithTimeout(ctx, r.auditTime())
		e, err := r.store.Audit.AppendLate(short, v)
		cancel()
		if err != nil {
			r.log.Debug("the audit log is away yet", "error", err)
			if e.Seq > 0 && (v.Tried == nil || v.Tried.Hash != e.Hash) { // the log may have it: the next try asks
				v.Tried = &e
				if err := l.write(name, v); err != nil {
					r.log.Warn("a line that waits for the audit log may be there twice", "file", name, "error", err)
				}
			}
			return false
		}
		l.remove(name)
		r.log.Info("a line that waited is in the audit log", "action", v.Action, "target", v.Target, "entry", e.Seq)
		if e.Seq > 0 {
			r.sinks.audit(e)
		}
	}
	return l.waiting() == 0
}
