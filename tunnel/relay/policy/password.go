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

// Bounds of argon2id's cost, so that a policy cannot stop the relay.
const (
	maxArgonMemory = 256 << 10 // KiB
	maxArgonTime   = 10
	maxBcryptCost  = 15
	// What a client may ask of the relay in its own policies: some 0.2 s for a try.
	ownArgonMemory = 64 << 10 // KiB
	ownArgonTime   = 4
	ownBcryptCost  = 12
	maxProved      = 1024
	// maxTrying is how many passwords of one policy wait for their turn. A visitor
	// of many addresses has tries without end, and may leave before its turn.
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

// Affordable returns an error, a FieldError, if a password of the document costs
// more time to try than a client may ask of the relay: all that it serves share that.
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

// passwords checks the users of one policy. It remembers who was right, by a
// keyed hash, so that only the first request of a visitor is slow.
type passwords struct {
	users map[string]string // name → hash
	other string            // a hash that nobody's password has
	key   [32]byte
	owner string // whose turns its tries take

	mu     sync.Mutex
	proved map[[sha256.Size]byte]bool
	trying map[[sha256.Size]byte]*trial
}

// trial is a name and password that are being tried. Who brings the same waits
// for its end: a browser that asks for many things at once makes one try.
type trial struct {
	done  chan struct{}
	right bool // set before done is closed
}

// verdict is what a check comes to.
type verdict int

const (
	wrongPassword verdict = iota
	rightPassword
	notTried // there was no try left
	crowded  // too many wait to be tried
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

// check tries a name and password that came from an address, unless they are known to
// be right or are being tried. try is asked for a try before; back gives it back.
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

// settle finds out whether a password is right, and tells who waits for it.
func (p *passwords) settle(id [sha256.Size]byte, t *trial, from netip.Prefix, name, password string) {
	hash, ok := p.users[name]
	if !ok {
		hash = p.other // takes as long as for a name that there is
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
