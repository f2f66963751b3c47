package policy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// Limits on argon2id's cost, so that a policy cannot bring the relay to a halt.
const (
	maxArgonMemory = 256 << 10 // KiB
	maxArgonTime   = 10
	maxBcryptCost  = 15
	// The most that a client may demand of the relay in its own policies: about 0.2 s per
	// attempt.
	ownArgonMemory = 64 << 10 // KiB
	ownArgonTime   = 4
	ownBcryptCost  = 12
	maxProved      = 1024
	// maxTrying is how many passwords of one policy may wait for their turn. A visitor
	// with many addresses has unlimited attempts, and may leave before its turn.
	maxTrying = 2 * maxUsers
)

type argonHash struct {
	memory, time uint32
	threads      uint8
	salt, sum    []byte
}

func parseArgon(hash string) (h argonHash, ok bool) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != "v=19" {
		return h, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil || n != 3 {
		return h, false
	}
	var err1, err2 error
	h.salt, err1 = base64.RawStdEncoding.DecodeString(parts[4])
	h.sum, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	ok = err1 == nil && err2 == nil && len(h.salt) >= 8 && len(h.sum) >= 16 && len(h.sum) <= 64 &&
		h.memory > 0 && h.memory <= maxArgonMemory && h.time > 0 && h.time <= maxArgonTime && h.threads > 0
	return h, ok
}

func validHash(hash string) bool {
	if strings.HasPrefix(hash, "$argon2id$") {
		_, ok := parseArgon(hash)
		return ok
	}
	cost, err := bcrypt.Cost([]byte(hash))
	return err == nil && cost <= maxBcryptCost
}

// Affordable returns a FieldError if a password of the document takes longer to try than
// a client may demand: everything that the relay serves shares its processors.
func (d Document) Affordable() error {
	for i, u := range d.BasicAuth {
		h, isArgon := parseArgon(u.Hash)
		cost, err := bcrypt.Cost([]byte(u.Hash))
		if isArgon && (h.memory > ownArgonMemory || h.time > ownArgonTime) || err == nil && cost > ownBcryptCost {
			return &FieldError{
				fmt.Sprintf("basic_auth[%d].hash", i),
				fmt.Sprintf("costs the relay too much; use bcrypt with a cost of %d at most, or argon2id with %d KiB and %d passes at most", ownBcryptCost, ownArgonMemory, ownArgonTime),
			}
		}
	}
	return nil
}

func checkHash(hash, password string) bool {
	if h, ok := parseArgon(hash); ok {
		sum := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, uint32(len(h.sum)))
		return subtle.ConstantTimeCompare(sum, h.sum) == 1
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
}

// hashOf returns a password's hash. It waits for the owner's turn.
func hashOf(owner, password string) (string, error) {
	defer hashing.take(owner, netip.Prefix{})()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	return string(hash), err
}

// passwords checks the users of one policy. It remembers correct passwords by a keyed
// hash, so that only a visitor's first request is slow.
type passwords struct {
	users map[string]string // name → hash
	other string            // a hash that matches nobody's password
	key   [32]byte
	owner string // whose turns its attempts take

	mu     sync.Mutex
	proved map[[sha256.Size]byte]bool
	trying map[[sha256.Size]byte]*trial
}

// trial is a name and password that are being tried. Whoever sends the same ones waits
// for the result, so a browser with many requests at once makes only one attempt.
type trial struct {
	done  chan struct{}
	right bool // set before done is closed
}

// verdict is the result of a check.
type verdict int

const (
	wrongPassword verdict = iota
	rightPassword
	notTried // no attempts were left
	crowded  // too many are waiting to be tried
)

func newPasswords(owner string, users []User) *passwords {
	p := &passwords{
		users: make(map[string]string, len(users)), owner: owner,
		proved: make(map[[sha256.Size]byte]bool), trying: make(map[[sha256.Size]byte]*trial),
	}
	rand.Read(p.key[:])
	for _, u := range users {
		p.users[u.Name] = u.Hash
		p.other = u.Hash
	}
	return p
}

// check tries a name and password sent from an address, unless they are known to be right
// or are already being tried. It calls try for permission first; back returns the
// attempt.
func (p *passwords) check(from netip.Prefix, name, password string, try func() (back func(), ok bool)) verdict {
	mac := hmac.New(sha256.New, p.key[:])
	fmt.Fprintf(mac, "%d:%s%s", len(name), name, password)
	id := [sha256.Size]byte(mac.Sum(nil))
	p.mu.Lock()
	known, t := p.proved[id], p.trying[id]
	var back func()
	if !known && t == nil {
		if len(p.trying) >= maxTrying {
			p.mu.Unlock()
			return crowded
		}
		var ok bool
		if back, ok = try(); !ok {
			p.mu.Unlock()
			return notTried
		}
		t = &trial{done: make(chan struct{})}
		p.trying[id] = t
	}
	p.mu.Unlock()
	switch {
	case known:
		return rightPassword
	case back != nil:
		p.settle(id, t, from, name, password)
		if t.right {
			back()
		}
	default:
		<-t.done
	}
	if t.right {
		return rightPassword
	}
	return wrongPassword
}

// settle finds out whether a password is right, and informs those waiting for the result.
func (p *passwords) settle(id [sha256.Size]byte, t *trial, from netip.Prefix, name, password string) {
	hash, ok := p.users[name]
	if !ok {
		hash = p.other // takes as long as for a name that exists
	}
	leave := hashing.take(p.owner, from)
	right := checkHash(hash, password) && ok
	leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	if right {
		if len(p.proved) >= maxProved {
			clear(p.proved)
		}
		p.proved[id] = true
	}
	t.right = right
	delete(p.trying, id)
	close(t.done)
}
