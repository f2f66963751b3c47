package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// sealed begins a value that is sealed; no PEM text does.
var sealed = []byte("adit-sealed-1:")

// errNoSecret is the error about a sealed value without the secret for it.
var errNoSecret = errors.New("it is sealed with a secret; set nats.secret_file to the other nodes' file")

// seal is AES-256-GCM under a key made from the operator's secret. What a value
// is called is authenticated with it, so that none passes for another.
type seal struct{ aead cipher.AEAD }

func newSeal(secret []byte) *seal {
	if len(secret) == 0 {
		return nil
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "adit relay settings", 32)
	if err != nil {
		panic(err) // the length is in bounds
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // so is the key's
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &seal{aead}
}

func isSealed(v []byte) bool { return bytes.HasPrefix(v, sealed) }

func (s *seal) close(name string, v []byte) []byte {
	return s.aead.Seal(bytes.Clone(sealed), nil, v, []byte(name))
}

func (s *seal) open(name string, v []byte) ([]byte, error) {
	if s == nil {
		return nil, errNoSecret
	}
	plain, err := s.aead.Open(nil, nil, v[len(sealed):], []byte(name))
	if err != nil {
		return nil, fmt.Errorf("the secret in nats.secret_file is not the one that it was sealed with: %w", err)
	}
	return plain, nil
}
