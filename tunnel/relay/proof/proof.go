// Package proof looks up the DNS records by which clients prove that names are theirs.
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

	"adit/internal/turns"
)

// Label precedes a name in the name of its TXT record.
const Label = "_adit"

const (
	word      = "adit-client="
	askTime   = 5 * time.Second // for one DNS query
	maxAsking = 16              // concurrent queries
	ofClient  = 4               // of these, for one client: its own name servers may never answer
	above     = 4               // names above a name that are queried as well
)

// Records are the proof records of a relay's clients.
type Records struct {
	key    []byte
	lookup func(ctx context.Context, name string) ([]string, error)
	asking *turns.Turns
}

// New returns Records with values derived from a relay's key, and looked up with lookup.
func New(key []byte, lookup func(ctx context.Context, name string) ([]string, error)) *Records {
	return &Records{key: key, lookup: lookup, asking: turns.New(maxAsking, ofClient)}
}

// Value returns the text of a client's record. It fits no other client, and reveals
// nothing.
func (p *Records) Value(clientID string) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte("domain proof " + clientID))
	return word + hex.EncodeToString(mac.Sum(nil)[:16])
}

// Find looks for a client's record at a name and at those above it, since whoever has a
// name has everything under it. It returns an error if the DNS did not answer. A name
// without a record is not an error.
func (p *Records) Find(ctx context.Context, name, clientID string) (found bool, err error) {
	err = p.asking.Take(ctx, clientID, func() (err error) {
		found, err = p.find(ctx, name, p.Value(clientID))
		return err
	})
	return found, err
}

func (p *Records) find(ctx context.Context, name, want string) (bool, error) {
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

// Names returns the names that a proof of a name covers.
func Names(name string) []string { return []string{name, "*." + name} }
