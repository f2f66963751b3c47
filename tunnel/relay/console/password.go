package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// The cost of a password hash: argon2id (RFC 9106) with 32 MiB and three passes, about 60
// ms of one core.
const (
	argonMemory = 32 << 10 // KiB
	argonTime   = 3
	argonSalt   = 16
	argonSum    = 32

	hashesAtOnce = 2
)

const (
	minPassword = 10  // characters
	maxPassword = 256 // bytes
)

// hashes limits how many passwords are tried at once, so that guesses from many addresses
// cannot starve the tunnels of processor time.
type hashes struct {
	slots  chan struct{}
	memory uint32 // KiB; tests use less
}

func (h hashes) params() string {
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=1$", h.memory, argonTime)
}

// hash returns a password's hash in PHC format.
func (h hashes) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argonSalt)
	rand.Read(salt)
	sum, err := h.sum(ctx, password, salt)
	if err != nil {
		return "", err
	}
	enc := base64.RawStdEncoding
	return h.params() + enc.EncodeToString(salt) + "$" + enc.EncodeToString(sum), nil
}

// check reports whether a password has a hash. An invalid hash takes just as long and
// matches nothing, so that the response time does not reveal which names exist.
func (h hashes) check(ctx context.Context, hash, password string) (bool, error) {
	salt, want := make([]byte, argonSalt), make([]byte, 0, argonSum)
	if rest, ok := strings.CutPrefix(hash, h.params()); ok {
		first, second, _ := strings.Cut(rest, "$")
		s, err1 := base64.RawStdEncoding.DecodeString(first)
		w, err2 := base64.RawStdEncoding.DecodeString(second)
		if err1 == nil && err2 == nil && len(w) == argonSum {
			salt, want = s, w
		}
	}
	sum, err := h.sum(ctx, password, salt)
	return err == nil && subtle.ConstantTimeCompare(sum, want) == 1, err
}

func (h hashes) sum(ctx context.Context, password string, salt []byte) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.slots }()
	return argon2.IDKey([]byte(password), salt, argonTime, h.memory, 1, argonSum), nil
}

// checkNewPassword returns an error if a chosen password is not acceptable.
func checkNewPassword(name, password string) error {
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return invalid("password", "the password must have at least %d characters", minPassword)
	case len(password) > maxPassword:
		return invalid("password", "the password must have at most %d bytes", maxPassword)
	case strings.EqualFold(password, name), strings.Count(password, password[:1]) == len(password):
		return invalid("password", "the password is too easy to guess")
	}
	return nil
}
