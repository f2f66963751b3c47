// Package audit implements the chain of entries that records who changed what at a relay.
// Each entry contains the SHA-256 of the previous one, so no entry can be altered,
// removed or inserted without the rest showing it. The package is pure: package store
// keeps the entries.
package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The kinds of actors.
const (
	KindAdminToken = "admin_token"
	KindAPIToken   = "api_token"
	KindUser       = "user"
	KindClient     = "client"
	KindSystem     = "system"
)

// Actor is who made a change.
type Actor struct {
	Kind    string `json:"kind"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
}

type actorKey struct{}

// WithActor returns a context that names who makes the changes under it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who makes the changes under a context. If none is named, it is the
// relay itself.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Kind: KindSystem}
}

// Change describes what was done.
type Change struct {
	Node   string
	Actor  Actor
	Action string // such as client.add
	Target string
	Detail any // becomes JSON; never contains a secret
}

// Entry is a link of the chain.
type Entry struct {
	Seq    uint64          `json:"seq"` // from 1, without gaps
	Time   time.Time       `json:"time"`
	Node   string          `json:"node,omitempty"`
	Actor  Actor           `json:"actor"`
	Action string          `json:"action"`
	Target string          `json:"target,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
	Prev   string          `json:"prev"` // the Hash of the previous entry; for the first, Root
	Hash   string          `json:"hash"`
}

// Root takes the place of the previous hash in the first entry.
const Root = "0000000000000000000000000000000000000000000000000000000000000000"

// MaxEntry is the maximum size of an entry as JSON.
const MaxEntry = 64 << 10

// Sum returns the hash that an entry must have: the SHA-256, in hex, of its JSON with an
// empty hash and with the fields in the order of Entry.
func (e Entry) Sum() string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Next returns the entry that follows the one with the given number and hash (0 and Root
// for the first).
func Next(seq uint64, prev string, at time.Time, c Change) (Entry, error) {
	e := Entry{
		Seq: seq + 1, Time: at.UTC().Truncate(time.Microsecond), Node: c.Node, Actor: c.Actor,
		Action: c.Action, Target: c.Target, Prev: prev,
	}
	if c.Detail != nil {
		text, err := json.Marshal(c.Detail)
		if err != nil {
			return Entry{}, fmt.Errorf("audit %s: %w", c.Action, err)
		}
		if len(text) > MaxEntry/2 {
			text = fmt.Appendf(nil, `{"too_large":%d}`, len(text))
		}
		e.Detail = text
	}
	e.Hash = e.Sum()
	if text, err := json.Marshal(e); err != nil || len(text) > MaxEntry {
		return Entry{}, fmt.Errorf("audit %s: the entry is larger than %d bytes", c.Action, MaxEntry)
	}
	return e, nil
}

// Result is the result of checking a chain.
type Result struct {
	OK       bool   `json:"ok"`
	Entries  uint64 `json:"entries"` // that are valid
	Head     string `json:"head"`    // the hash of the last of them
	BrokenAt uint64 `json:"broken_at,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Verifier checks a chain entry by entry.
type Verifier struct {
	// Wanted is a hash noted earlier that must be in the chain. If empty, none.
	Wanted string

	seq   uint64
	head  string
	found bool
	fault *Result
}

// Add checks the next entry, and reports whether the chain is valid so far.
func (v *Verifier) Add(e Entry) bool {
	if v.fault != nil {
		return false
	}
	if v.head == "" {
		v.head = Root
	}
	reason := ""
	switch {
	case e.Seq != v.seq+1:
		reason = fmt.Sprintf("entry %d follows entry %d", e.Seq, v.seq)
	case e.Prev != v.head:
		reason = "it does not have the hash of the entry before it"
	case e.Hash != e.Sum():
		reason = "its own hash does not fit what it says"
	}
	if reason != "" {
		v.Break(v.seq+1, reason)
		return false
	}
	v.seq, v.head = e.Seq, e.Hash
	v.found = v.found || e.Hash == v.Wanted
	return true
}

// Break records that an entry cannot be read.
func (v *Verifier) Break(seq uint64, reason string) {
	if v.fault == nil {
		v.fault = &Result{BrokenAt: seq, Reason: reason}
	}
}

// Result returns what was found.
func (v *Verifier) Result() Result {
	r := Result{OK: true}
	if v.fault != nil {
		r = *v.fault
	} else if v.Wanted != "" && !v.found && v.Wanted != Root {
		r = Result{Reason: "the hash that was noted is not in the chain: entries at its end were cut off, or it is another chain"}
	}
	r.Entries, r.Head = v.seq, v.head
	if r.Head == "" {
		r.Head = Root
	}
	return r
}

// ParseEntry parses a stored entry. Unknown fields are an error: they would not be part
// of the hash.
func ParseEntry(text []byte) (Entry, error) {
	var e Entry
	if len(text) > MaxEntry {
		return e, fmt.Errorf("the entry is larger than %d bytes", MaxEntry)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return Entry{}, fmt.Errorf("the entry does not parse: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Entry{}, errors.New("something follows the entry")
	}
	return e, nil
}
