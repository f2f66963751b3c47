// Package proof finds the DNS records by which clients prove that names are theirs.
package proof

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"time"
)

// Label is put before a name, for the name of its TXT record.
const Label = "_adit"

const (
	word      = "adit-client="
	askTime   = 5 * time.Second // for one question to the DNS
	maxAsking = 16              // questions at once
	above     = 4               // names above one that are asked for too
)

// Records are the records of a relay's clients.
type Records struct {
	key    []byte
	lookup func(ctx context.Context, name string) ([]string, error)
	asking chan struct{}
}

// New returns the records that a relay's key makes, and that are looked up so.
func New(key []byte, lookup func(ctx context.Context, name string) ([]string, error)) *Records {
	return &Records{key: key, lookup: lookup, asking: make(chan struct{}, maxAsking)}
}

// Value is what the record of a client says: nobody else's fits, and it tells
// nothing.
func (p *Records) Value(clientID string) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte("domain proof " + clientID))
	return word + hex.EncodeToString(mac.Sum(nil)[:16])
}

// Find looks for the record of a client at a name and those above it: who has a
// name has all under it. The error is of a DNS that did not answer; a name without a
// record is none.
func (p *Records) Find(ctx context.Context, name, clientID string) (bool, error) {
	want := p.Value(clientID)
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	var fault error
	for range above {
		short, cancel := context.WithTimeout(ctx, askTime)
		list, err := p.lookup(short, Label+"."+name+".")
		cancel()
		if slices.Contains(list, want) {
			return true, nil
		}
		var dns *net.DNSError
		if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
			fault = err
		}
		_, parent, ok := strings.Cut(name, ".")
		if !ok || !strings.Contains(parent, ".") {
			break
		}
		name = parent
	}
	return false, fault
}

// Names are the names that a proof of a name is for.
func Names(name string) []string { return []string{name, "*." + name} }
