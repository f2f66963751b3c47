// Package certificates keeps what an ACME client needs in a bucket: accounts, certificates
// with their keys, challenges in progress, and locks that let only one node at a time request
// a certificate. The client decides who requests which certificate.
package certificates

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

const (
	lockLease = 30 * time.Second // after which the lock of a dead node is taken over
	lockPoll  = 250 * time.Millisecond
)

// Storage implements certmagic.Storage.
type Storage struct {
	kv    jetstream.KeyValue
	life  context.Context // of the store; its end stops the renewal of leases
	lease time.Duration
	work  sync.WaitGroup

	mu   sync.Mutex
	held map[string]*heldLock // by name
}

type heldLock struct {
	key  string
	id   []byte
	rev  uint64
	stop context.CancelFunc
	done chan struct{}
}

// New returns the storage in a bucket. Leases are renewed until life ends.
func New(life context.Context, kv jetstream.KeyValue) *Storage {
	return &Storage{kv: kv, life: life, lease: lockLease, held: make(map[string]*heldLock)}
}

// Wait waits until no lease is being renewed any more, after life has ended.
func (c *Storage) Wait() { c.work.Wait() }

// natsKey encodes a path as a key. The path's parts become tokens, and characters that a token
// may not contain become =XX.
func natsKey(root, key string) string {
	var b strings.Builder
	b.WriteString(root)
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+key), "/"), "/") {
		if part == "" {
			continue
		}
		b.WriteByte('.')
		for _, c := range []byte(part) {
			if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "=%02X", c)
			}
		}
	}
	return b.String()
}

// pathOf decodes what natsKey has encoded.
func pathOf(root, key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, root), ".")
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		switch {
		case key[i] == '.':
			b.WriteByte('/')
		case key[i] == '=' && i+2 < len(key):
			c, _ := strconv.ParseUint(key[i+1:i+3], 16, 8) // valid, since natsKey wrote it
			b.WriteByte(byte(c))
			i += 2
		default:
			b.WriteByte(key[i])
		}
	}
	return b.String()
}

const (
	dataRoot = "data"
	lockRoot = "lock"
)

// Store stores a value under a key and replaces any other. Callers that must be the only
// writer hold a lock.
func (c *Storage) Store(ctx context.Context, key string, value []byte) error {
	if err := bucket.Replace(ctx, c.kv, natsKey(dataRoot, key), value); err != nil {
		return fmt.Errorf("store certificate data %q: %w", key, err)
	}
	return nil
}

func (c *Storage) get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := bucket.Read(ctx, c.kv, natsKey(dataRoot, key))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("read certificate data %q: %w", key, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("read certificate data %q: %w", key, err)
	}
	return e, nil
}

// Load returns the value of a key. If there is none, the error is fs.ErrNotExist.
func (c *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	e, err := c.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return e.Value(), nil
}

// Delete removes a key and everything below it.
func (c *Storage) Delete(ctx context.Context, key string) error {
	below, err := c.List(ctx, key, true)
	if err != nil {
		return err
	}
	for _, k := range append(below, key) {
		if err := bucket.Purge(ctx, c.kv, natsKey(dataRoot, k)); err != nil {
			return fmt.Errorf("remove certificate data %q: %w", k, err)
		}
	}
	return nil
}

// Exists reports whether a key has a value or there are keys below it.
func (c *Storage) Exists(ctx context.Context, key string) bool {
	_, err := c.Stat(ctx, key)
	return err == nil
}

// List returns the keys below a path: all of them, or only the next level.
func (c *Storage) List(ctx context.Context, under string, recursive bool) ([]string, error) {
	prefix := natsKey(dataRoot, under)
	keys, err := bucket.Keys(ctx, c.kv, prefix+".>")
	if err != nil {
		return nil, fmt.Errorf("list certificate data %q: %w", under, err)
	}
	list := []string{}
	for _, key := range keys {
		if !recursive {
			next, _, _ := strings.Cut(key[len(prefix)+1:], ".")
			key = prefix + "." + next
		}
		list = append(list, pathOf(dataRoot, key))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Stat describes a key.
func (c *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	e, err := c.get(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: e.Created(), Size: int64(len(e.Value())), IsTerminal: true}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if below, listErr := c.List(ctx, key, false); listErr == nil && len(below) > 0 {
			return certmagic.KeyInfo{Key: key}, nil
		}
	}
	return certmagic.KeyInfo{}, err
}

// Lock waits for a lock and takes it; no other goroutine of any node has it then. The holder
// renews the lock. A lock that has not been renewed for the length of a lease, by the clock of
// the one waiting, is taken over.
func (c *Storage) Lock(ctx context.Context, name string) error {
	key, id := natsKey(lockRoot, name), []byte(rand.Text())
	var seen uint64
	var since time.Time
	for {
		rev, _, err := bucket.Again(ctx, func(ctx context.Context) (uint64, error) { return c.kv.Create(ctx, key, id) })
		if errors.Is(err, jetstream.ErrKeyExists) {
			e, getErr := bucket.Read(ctx, c.kv, key)
			switch {
			case errors.Is(getErr, jetstream.ErrKeyNotFound):
				continue // just released
			case getErr != nil:
				return fmt.Errorf("lock %q: %w", name, getErr)
			case bytes.Equal(e.Value(), id): // by an attempt whose answer was lost
				rev, err = e.Revision(), nil
			case e.Revision() != seen:
				seen, since = e.Revision(), time.Now()
			case time.Since(since) > c.lease:
				rev, err = c.kv.Update(ctx, key, id, seen)
			}
		}
		switch {
		case err == nil:
			c.hold(name, &heldLock{key: key, id: id, rev: rev, done: make(chan struct{})})
			return nil
		case !bucket.IsConflict(err):
			return fmt.Errorf("lock %q: %w", name, err)
		}
		pause := time.NewTimer(lockPoll)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("lock %q: %w", name, ctx.Err())
		}
	}
}

// hold renews a lock until Unlock, or until the store is closed.
func (c *Storage) hold(name string, h *heldLock) {
	var ctx context.Context
	ctx, h.stop = context.WithCancel(c.life)
	c.mu.Lock()
	c.held[name] = h
	c.mu.Unlock()
	c.work.Go(func() {
		defer close(h.done)
		tick := time.NewTicker(c.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				rev, err := c.kv.Update(ctx, h.key, h.id, h.rev)
				switch {
				case err == nil:
					h.rev = rev
				case bucket.IsConflict(err) && !c.still(ctx, h):
					return // another holder has taken it over
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// still reports whether h still holds its lock although the lock's revision is not the one
// that h knows, because a renewal whose answer was lost has changed it. It also reports true
// if that cannot be found out at the moment.
func (c *Storage) still(ctx context.Context, h *heldLock) bool {
	e, err := c.kv.Get(ctx, h.key)
	if err != nil {
		return !errors.Is(err, jetstream.ErrKeyNotFound)
	}
	if !bytes.Equal(e.Value(), h.id) {
		return false
	}
	h.rev = e.Revision()
	return true
}

// Unlock releases a lock.
func (c *Storage) Unlock(ctx context.Context, name string) error {
	c.mu.Lock()
	h := c.held[name]
	delete(c.held, name)
	c.mu.Unlock()
	if h == nil {
		return fmt.Errorf("unlock %q: %w", name, fs.ErrNotExist)
	}
	h.stop()
	<-h.done
	for {
		_, err := bucket.Remove(ctx, c.kv, h.key, h.rev)
		before := h.rev
		if bucket.IsConflict(err) && c.still(ctx, h) && h.rev != before {
			continue
		}
		if err != nil && !bucket.IsConflict(err) {
			return fmt.Errorf("unlock %q: %w", name, err)
		}
		return nil
	}
}
