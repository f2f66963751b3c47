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

// The cost of a password's hash: argon2id (RFC 9106) over 32 MiB, three passes,
// some 60 ms of one core.
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

// hashes bounds how many passwords are tried at once, so that guesses from many
// addresses cannot take the machine away from the tunnels.
type hashes struct {
	slots  chan struct{}
	memory uint32 // KiB; tests take less
}

func (h hashes) params() string {
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=1$", h.memory, argonTime)
}

// hash returns a password's hash in PHC form.
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

// check reports whether a password has a hash. A hash that is none takes as long
// and is nobody's, so that an answer's time does not tell which names there are.
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

// checkNewPassword reports what is wrong with a password that someone chose.
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
