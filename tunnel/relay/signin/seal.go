package signin

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"

	"golang.org/x/crypto/chacha20poly1305"
)

// state is what a visitor takes along to the provider and back.
type state struct {
	Provider string `json:"p"`
	Scheme   string `json:"s"`
	Host     string `json:"h"`
	Target   string `json:"t"`
	ID       string `json:"i"`
	Browser  string `json:"b"` // of secrets
	Until    int64  `json:"u"` // seconds since 1970
}

// seal closes values into texts that only a node of the relay can read or make:
// XChaCha20-Poly1305, whose nonces are long enough to be random for as many texts
// as strangers may ask for.
type seal struct {
	aead cipher.AEAD
	mac  []byte // the key of secrets
}

func newSeal(key []byte) *seal {
	derive := func(of string) []byte {
		k, err := hkdf.Key(sha256.New, key, nil, "adit sign-in "+of, chacha20poly1305.KeySize)
		if err != nil {
			panic(err) // the length is in bounds
		}
		return k
	}
	aead, err := chacha20poly1305.NewX(derive("texts"))
	if err != nil {
		panic(err) // so is the key's
	}
	return &seal{aead: aead, mac: derive("secrets")}
}

// close seals a value. It opens only for the same purpose and place.
func (s *seal) close(purpose, place string, value any) string {
	plain := asJSON(value)
	nonce := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(purpose+"\n"+place)))
}

// asJSON is a value as JSON, in which < has one byte and not six as in web pages.
func asJSON(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // only our own structs of texts, numbers and times come here
	}
	return b.Bytes()
}

// open reads what close made into value, and reports whether it could.
func (s *seal) open(purpose, place, text string, value any) bool {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < chacha20poly1305.NonceSizeX {
		return false
	}
	nonce, sealed := data[:chacha20poly1305.NonceSizeX], data[chacha20poly1305.NonceSizeX:]
	plain, err := s.aead.Open(nil, nonce, sealed, []byte(purpose+"\n"+place))
	return err == nil && json.Unmarshal(plain, value) == nil
}

// secrets bind a sign-in to the browser that began it.
type secrets struct {
	verifier string // of PKCE (RFC 7636, section 4.1)
	nonce    string // which the identity has in it, if it is signed
	browser  string // which the state has in it
}

// secretsOf makes the secrets of the sign-in with an id, in the browser that has
// the random text own.
func (v *Visitors) secretsOf(own, id string) secrets {
	of := func(what string) string {
		m := hmac.New(sha256.New, v.seal.mac)
		m.Write([]byte(what + "\n" + own + "\n" + id))
		return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	return secrets{verifier: of("verifier"), nonce: of("nonce"), browser: of("browser")}
}

// same compares what nobody is to guess in parts.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// randomText is 128 bits nobody can guess.
func randomText() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}
