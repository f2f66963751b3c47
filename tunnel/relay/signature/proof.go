package signature

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"strings"
)

// maxWhole limits a body that is checked in one piece. Only Discord's and Twilio's are,
// and they are far smaller.
const maxWhole = 1 << 20

// Proves reports whether one of the secrets signed the body, and which. It calls body at
// most once per secret, and never unless NeedsBody.
func (p *Proof) Proves(body func(io.Writer)) (Print, bool) {
	right := p.way.right
	switch {
	case p.way.token:
		right = (*Proof).token
	case right == nil:
		right = (*Proof).hmac
	}
	for i, key := range p.v.keys {
		if right(p, key, body) {
			return p.v.print(i), true
		}
	}
	return Print{}, false
}

// hmac verifies an HMAC.
func (p *Proof) hmac(key []byte, body func(io.Writer)) bool {
	mac := hmac.New(p.hash(), key)
	p.write(mac, body)
	return p.fits(mac.Sum(nil))
}

func (p *Proof) hash() func() hash.Hash {
	if p.way.hash == nil {
		return sha256.New
	}
	return p.way.hash
}

// write writes everything that is signed.
func (p *Proof) write(w io.Writer, body func(io.Writer)) {
	_, _ = w.Write(p.before) // a hash never fails
	body(w)
	_, _ = w.Write(p.behind)
}

// fits reports in constant time whether a sum is one of the signatures.
func (p *Proof) fits(want []byte) (right bool) {
	for _, sum := range p.sums {
		right = hmac.Equal(sum, want) || right
	}
	return right
}

// token checks a secret that is sent in plain text. It compares hashes, so that the time
// does not reveal the length either.
func (p *Proof) token(key []byte, _ func(io.Writer)) bool {
	got, want := sha256.Sum256(p.sums[0]), sha256.Sum256(key)
	return hmac.Equal(got[:], want[:])
}

// whole collects a text in one piece, up to a limit.
type whole struct {
	b    []byte
	left int
}

func (w *whole) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left >= 0 {
		w.b = append(w.b, b...)
	}
	return len(b), nil
}

func (p *Proof) ed25519(key []byte, body func(io.Writer)) bool {
	text := whole{left: maxWhole + len(p.before)}
	p.write(&text, body)
	return text.left >= 0 && len(p.sums[0]) == ed25519.SignatureSize && ed25519.Verify(key, text.b, p.sums[0])
}

func ed25519Key(secret string) ([]byte, string) {
	key, err := hex.DecodeString(secret)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, "must be the application's public key: 64 hexadecimal digits"
	}
	return key, ""
}

func (p *Proof) ecdsa(key []byte, body func(io.Writer)) bool {
	public, err := x509.ParsePKIXPublicKey(key)
	if err != nil {
		return false // ecdsaKey has already parsed it
	}
	sum := sha256.New()
	p.write(sum, body)
	return ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), sum.Sum(nil), p.sums[0])
}

func ecdsaKey(secret string) ([]byte, string) {
	const must = "must be the verification key: base64 of a public key of ECDSA by P-256"
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return nil, must
	}
	public, err := x509.ParsePKIXPublicKey(key)
	if p, ok := public.(*ecdsa.PublicKey); err != nil || !ok || p.Curve != elliptic.P256() {
		return nil, must
	}
	return key, ""
}

func standardKey(secret string) ([]byte, string) {
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(secret, "whsec_"), "="))
	if err != nil || len(key) < minSecret {
		return nil, "must be base64, with or without whsec_ before it"
	}
	return key, ""
}
