// Package signature verifies that a webhook comes from the provider that it claims to
// come from, by the signature or token that the provider sends with it. It knows how
// providers sign, and nothing about policies or how a body is read.
package signature

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"
)

const (
	// Tolerance is how far a signed time may be off in either direction.
	Tolerance = 5 * time.Minute
	// MaxSecrets is how many secrets may be valid at the same time, while one replaces
	// another.
	MaxSecrets = 3

	// Guesses are not limited, since providers share addresses. So the secret has to be
	// long.
	minSecret = 8
	maxSecret = 256
)

// Secret is a provider's secret. Only JSON shows it.
type Secret string

func (Secret) String() string       { return "[secret]" }
func (Secret) GoString() string     { return "[secret]" }
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// Scheme says how webhooks are signed.
type Scheme struct {
	Provider string // one of Providers
	// The remaining fields are for HMAC.
	Header    string // contains the signature
	Algorithm string // sha256, sha512 or sha1; empty: sha256
	Encoding  string // hex or base64; empty: hex
	Prefix    string // precedes the signature
}

// FieldError is the first fault of a scheme or its secrets, with the name of the field.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Verifier tells valid signatures from invalid ones.
type Verifier struct {
	ways []provider // of a single provider; at least one
	keys [][]byte
}

// New returns a verifier for a scheme. Any of the secrets may have signed. The error is a
// *FieldError.
func New(s Scheme, secrets []Secret) (*Verifier, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	v := &Verifier{ways: s.ways()}
	if len(secrets) == 0 {
		return nil, &FieldError{"secrets", "are missing"}
	}
	if len(secrets) > MaxSecrets {
		return nil, &FieldError{"secrets", fmt.Sprintf("has more than %d secrets", MaxSecrets)}
	}
	for i, secret := range secrets {
		if err := v.add(fmt.Sprintf("secrets[%d]", i), string(secret)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New, "sha1": sha1.New}

func (s Scheme) check() error {
	switch {
	case !slices.Contains(Providers(), s.Provider):
		return &FieldError{"provider", fmt.Sprintf("must be one of %s", strings.Join(Providers(), ", "))}
	case s.Provider != HMAC && s.Header != "":
		return &FieldError{"header", "is for the provider hmac"}
	case s.Provider != HMAC && s.Algorithm != "":
		return &FieldError{"algorithm", "is for the provider hmac"}
	case s.Provider != HMAC && s.Encoding != "":
		return &FieldError{"encoding", "is for the provider hmac"}
	case s.Provider != HMAC && s.Prefix != "":
		return &FieldError{"prefix", "is for the provider hmac"}
	case s.Provider != HMAC:
		return nil
	case len(s.Header) > 128 || !httpguts.ValidHeaderFieldName(s.Header):
		return &FieldError{"header", "must be the name of the header that has the signature"}
	case s.Algorithm != "" && algorithms[s.Algorithm] == nil:
		return &FieldError{"algorithm", "must be sha256, sha512 or sha1"}
	case s.Encoding != "" && s.Encoding != "hex" && s.Encoding != "base64":
		return &FieldError{"encoding", "must be hex or base64"}
	case len(s.Prefix) > 64 || strings.ContainsFunc(s.Prefix, func(c rune) bool { return c <= ' ' || c > '~' }):
		return &FieldError{"prefix", "must have at most 64 characters of ASCII and no space"}
	}
	return nil
}

// ways returns the ways in which the provider of a checked scheme signs.
func (s Scheme) ways() (ways []provider) {
	if s.Provider == HMAC {
		w := provider{name: HMAC, header: s.Header, prefix: s.Prefix, hash: algorithms[cmp.Or(s.Algorithm, "sha256")]}
		if s.Encoding == "base64" {
			w.decode = from64
		}
		return []provider{w}
	}
	for _, w := range providers {
		if w.name == s.Provider {
			ways = append(ways, w)
		}
	}
	return ways
}

// add adds a secret, or returns an error if it is not valid.
func (v *Verifier) add(field, secret string) error {
	switch {
	case len(secret) < minSecret || len(secret) > maxSecret:
		return &FieldError{field, fmt.Sprintf("must have %d to %d bytes", minSecret, maxSecret)}
	case strings.TrimSpace(secret) != secret || strings.ContainsFunc(secret, unicode.IsControl):
		return &FieldError{field, "must not begin or end with a space, nor have line ends"}
	}
	key := []byte(secret)
	if read := v.ways[0].secret; read != nil {
		var must string
		if key, must = read(secret); must != "" {
			return &FieldError{field, must}
		}
	}
	v.keys = append(v.keys, key)
	return nil
}

// NeedsBody reports whether the body is signed.
func (v *Verifier) NeedsBody() bool { return !v.ways[0].token }

// Print identifies a provider's secret without revealing it.
type Print [sha256.Size]byte

func (v *Verifier) print(i int) Print {
	return sha256.Sum256(append([]byte(v.ways[0].name+"\x00"), v.keys[i]...))
}

// Knows reports whether the secret that proved something is one of the verifier's.
func (v *Verifier) Knows(p Print) bool {
	for i := range v.keys {
		if v.print(i) == p {
			return true
		}
	}
	return false
}
