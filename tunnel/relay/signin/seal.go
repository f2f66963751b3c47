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

// state is what a visitor carries to the provider and back.
type state struct {
	Provider string `json:"p"`
	Scheme   string `json:"s"`
	Host     string `json:"h"`
	Target   string `json:"t"`
	ID       string `json:"i"`
	Browser  string `json:"b"` // from secrets
	Until    int64  `json:"u"` // seconds since 1970
}

// seal turns values into texts that only a node of the relay can read or make. It uses
// XChaCha20-Poly1305, whose nonces are long enough to be random for as many texts as
// strangers may request.
type seal struct {
	aead cipher.AEAD
	mac  []byte // the key for secrets
}

func newSeal(key []byte) *seal {
	derive := func(of string) []byte {
		k, err := hkdf.Key(sha256.New, key, nil, "adit sign-in "+of, chacha20poly1305.KeySize)
		if err != nil {
			panic(err) // the length is within limits
		}
		return k
	}
	aead, err := chacha20poly1305.NewX(derive("texts"))
	if err != nil {
		panic(err) // so is the key's
	}
	return &seal{aead: aead, mac: derive("secrets")}
}

// close seals a value. It can be opened only for the same purpose and place.
func (s *seal) close(purpose, place string, value any) string {
	plain := asJSON(value)
	nonce := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(purpose+"\n"+place)))
}

// asJSON returns a value as JSON, with < as one byte rather than the six that it takes in
// web pages.
func asJSON(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // only our own structs of texts, numbers and times get here
	}
	return b.Bytes()
}

// open decodes what close returned into value, and reports whether it could.
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
	verifier string // for PKCE (RFC 7636, section 4.1)
	nonce    string // contained in the identity, if it is signed
	browser  string // contained in the state
}

// secretsOf derives the secrets of a sign-in from its id and from own, the browser's
// random text.
func (v *Visitors) secretsOf(own, id string) secrets {
	of := func(what string) string {
		m := hmac.New(sha256.New, v.seal.mac)
		m.Write([]byte(what + "\n" + own + "\n" + id))
		return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	return secrets{verifier: of("verifier"), nonce: of("nonce"), browser: of("browser")}
}

// same compares in constant time, so that nothing can be guessed part by part.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// randomText returns 128 bits that nobody can guess.
func randomText() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}
