// Package signature tells whether a webhook comes from the provider that it claims
// to come from: by the signature, or the token, that the provider sends with it. It
// knows how providers sign, and nothing of policies or of how a body is read.
package signature

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"
)

// Providers, as a Scheme names them.
const (
	GitHub   = "github"
	GitLab   = "gitlab"
	Stripe   = "stripe"
	Slack    = "slack"
	Shopify  = "shopify"
	Discord  = "discord"
	Standard = "standard" // Standard Webhooks, as Svix and many others have it
	HMAC     = "hmac"     // whoever signs the body alone; the Scheme says how
)

// Providers returns the providers that a Scheme may name.
func Providers() []string {
	return []string{GitHub, GitLab, Stripe, Slack, Shopify, Discord, Standard, HMAC}
}

const (
	// Tolerance is how far a signed time may be off, both ways.
	Tolerance = 5 * time.Minute
	// MaxSecrets is how many secrets may be right at once: while one takes the
	// place of another.
	MaxSecrets = 3
	// maxDiscord bounds what Discord signs, which is checked in one piece.
	// Interactions are far smaller.
	maxDiscord = 1 << 20

	// There is no bound on guesses, since providers' addresses are shared: the
	// secret has to be long.
	minSecret = 8
	maxSecret = 256
)

// Secret is a provider's secret. It is shown by JSON alone.
type Secret string

func (Secret) String() string       { return "[secret]" }
func (Secret) GoString() string     { return "[secret]" }
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// Scheme says how webhooks are signed.
type Scheme struct {
	Provider string // one of Providers
	// The rest is HMAC's.
	Header    string // that has the signature
	Algorithm string // sha256, sha512 or sha1; empty: sha256
	Encoding  string // hex or base64; empty: hex
	Prefix    string // before the signature
}

// FieldError is the first fault of a scheme or its secrets, with the field at fault.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Verifier tells right signatures from wrong ones.
type Verifier struct {
	scheme  Scheme
	hash    func() hash.Hash
	decode  func(string) ([]byte, error)
	keys    [][]byte
	publics []ed25519.PublicKey
}

// New returns the verifier of a scheme, with the secrets any of which may have
// signed. The error is a FieldError.
func New(s Scheme, secrets []Secret) (*Verifier, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	v := &Verifier{scheme: s, hash: sha256.New, decode: hex.DecodeString}
	switch s.Provider {
	case GitHub:
		v.scheme.Header, v.scheme.Prefix = "X-Hub-Signature-256", "sha256="
	case Shopify:
		v.scheme.Header, v.decode = "X-Shopify-Hmac-Sha256", base64.StdEncoding.DecodeString
	case Standard:
		v.decode = base64.StdEncoding.DecodeString
	case HMAC:
		v.hash = algorithms[cmp.Or(s.Algorithm, "sha256")]
		if s.Encoding == "base64" {
			v.decode = base64.StdEncoding.DecodeString
		}
	}
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

// add takes one more secret, or says why it is none.
func (v *Verifier) add(field, secret string) error {
	switch {
	case len(secret) < minSecret || len(secret) > maxSecret:
		return &FieldError{field, fmt.Sprintf("must have %d to %d bytes", minSecret, maxSecret)}
	case strings.TrimSpace(secret) != secret || strings.ContainsFunc(secret, unicode.IsControl):
		return &FieldError{field, "must not begin or end with a space, nor have line ends"}
	}
	key := []byte(secret)
	switch v.scheme.Provider {
	case Standard:
		text := strings.TrimRight(strings.TrimPrefix(secret, "whsec_"), "=")
		decoded, err := base64.RawStdEncoding.DecodeString(text)
		if err != nil || len(decoded) < minSecret {
			return &FieldError{field, "must be base64, with or without whsec_ before it"}
		}
		key = decoded
	case Discord:
		decoded, err := hex.DecodeString(secret)
		if err != nil || len(decoded) != ed25519.PublicKeySize {
			return &FieldError{field, "must be the application's public key: 64 hexadecimal digits"}
		}
		v.publics = append(v.publics, decoded)
	}
	v.keys = append(v.keys, key)
	return nil
}

// NeedsBody reports whether the body is signed.
func (v *Verifier) NeedsBody() bool { return v.scheme.Provider != GitLab }

// Proof is what a request's header has for proof.
type Proof struct {
	v      *Verifier
	before []byte   // is signed before the body
	sums   [][]byte // any of them may be right
	token  string   // GitLab's
}

// Read reads the proof in a request's header at a moment. The error says what is
// wrong with it, to the operator; the secrets have not been asked yet.
func (v *Verifier) Read(h http.Header, now time.Time) (*Proof, error) {
	switch v.scheme.Provider {
	case GitLab:
		token, err := only(h, "X-Gitlab-Token")
		return &Proof{v: v, token: token}, err
	case Stripe:
		return v.readStripe(h, now)
	case Slack:
		return v.readTimed(h, now, timed{time: "X-Slack-Request-Timestamp", sum: "X-Slack-Signature", prefix: "v0=", before: "v0:", behind: ":"})
	case Discord:
		return v.readTimed(h, now, timed{time: "X-Signature-Timestamp", sum: "X-Signature-Ed25519"})
	case Standard:
		return v.readStandard(h, now)
	}
	value, err := only(h, v.scheme.Header)
	if err != nil {
		return nil, err
	}
	sum, err := v.sum(v.scheme.Header, v.scheme.Prefix, value)
	return &Proof{v: v, sums: [][]byte{sum}}, err
}
