// Package seal encrypts values with the operator's secret, so that someone who reads a disk or
// traffic does not obtain them. A value's name is authenticated with it. The caller decides
// who seals what, and how it is stored.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// prefix begins every sealed value. No PEM text begins with it.
var prefix = []byte("adit-sealed-1:")

// errNoSecret is returned for a sealed value if the secret is not configured.
var errNoSecret = errors.New("it is sealed with a secret; set nats.secret_file to the other nodes' file")

// Seal is AES-256-GCM with a key derived from the operator's secret. A value's name is
// authenticated with it, so that no value can pass for another. A nil Seal, for a relay
// without a secret, opens nothing.
type Seal struct{ aead cipher.AEAD }

// New returns the Seal for a secret, or nil if the secret is empty.
func New(secret []byte) *Seal {
	if len(secret) == 0 {
		return nil
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "adit relay settings", 32)
	if err != nil {
		panic(err) // the length is valid
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // so is the key's
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &Seal{aead}
}

// Is reports whether a value is sealed.
func Is(v []byte) bool { return bytes.HasPrefix(v, prefix) }

// Close seals a value under a name. s must not be nil.
func (s *Seal) Close(name string, v []byte) []byte {
	return s.aead.Seal(bytes.Clone(prefix), nil, v, []byte(name))
}

// Open opens a value that Close has sealed under the same name.
func (s *Seal) Open(name string, v []byte) ([]byte, error) {
	if s == nil {
		return nil, errNoSecret
	}
	plain, err := s.aead.Open(nil, nil, v[len(prefix):], []byte(name))
	if err != nil {
		return nil, fmt.Errorf("the secret in nats.secret_file is not the one that it was sealed with: %w", err)
	}
	return plain, nil
}
