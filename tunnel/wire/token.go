package wire

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// TokenPrefix begins every auth token, so that scanners for leaked secrets find it.
const TokenPrefix = "adit_"

// SecretSize is the length of a token's secret in bytes.
const SecretSize = 32

const (
	tokenVersion  = 1
	tokenSumSize  = 4
	maxTokenChars = 512
	maxTokenAddr  = 253 + 6
)

// Token holds all that an agent needs to find its relay, trust it and authenticate to it.
//
// As text it is TokenPrefix followed by the base64url encoding (RFC 4648 §5, no padding) of:
// version (1 byte, 1), fingerprint (32), secret (32), the relay's address as host:port (the
// rest), and the first 4 bytes of the SHA-256 of all that. The checksum tells a token that was
// cut short when pasted from a wrong one.
type Token struct {
	Relay       string   // host:port
	Fingerprint [32]byte // SHA-256 of the relay's authority certificate (DER)
	Secret      [SecretSize]byte
}

// ErrToken is matched by every error of ParseToken.
var ErrToken = errors.New("not an auth token")

// tokenAlphabet is the set of characters that may follow the prefix (RFC 4648, section 5).
const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func tokenError(why string) error { return fmt.Errorf("%w: %s", ErrToken, why) }

// ParseToken parses a token. Surrounding white space is ignored.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxTokenChars {
		return Token{}, tokenError("it is too long")
	}
	body, ok := strings.CutPrefix(text, TokenPrefix)
	if !ok {
		return Token{}, tokenError("it must begin with " + TokenPrefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil && strings.Trim(body, tokenAlphabet) != "" {
		return Token{}, tokenError("it has characters that a token cannot have")
	}
	if err != nil {
		return Token{}, tokenError("a part of it is missing or mistyped")
	}
	const fixed = 1 + 32 + SecretSize
	if len(raw) < fixed+1+tokenSumSize {
		return Token{}, tokenError("a part of it is missing")
	}
	data, sum := raw[:len(raw)-tokenSumSize], raw[len(raw)-tokenSumSize:]
	want := sha256.Sum256(data)
	if subtle.ConstantTimeCompare(want[:tokenSumSize], sum) != 1 {
		return Token{}, tokenError("a part of it is missing or mistyped")
	}
	if data[0] != tokenVersion {
		return Token{}, tokenError(fmt.Sprintf("its version %d is not known here; update adit", data[0]))
	}
	t := Token{Relay: string(data[fixed:])}
	copy(t.Fingerprint[:], data[1:])
	copy(t.Secret[:], data[33:])
	if err := checkAddr(t.Relay); err != nil {
		return Token{}, err
	}
	return t, nil
}

func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || len(addr) > maxTokenAddr {
		return tokenError("the relay's address in it is not host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return tokenError("the relay's port in it is not 1 to 65535")
	}
	return nil
}

// Reveal returns the token as text. The text is a secret: the command that makes the token
// prints it once, and it is never logged.
func (t Token) Reveal() string {
	data := make([]byte, 0, 1+32+SecretSize+len(t.Relay)+tokenSumSize)
	data = append(data, tokenVersion)
	data = append(data, t.Fingerprint[:]...)
	data = append(data, t.Secret[:]...)
	data = append(data, t.Relay...)
	sum := sha256.Sum256(data)
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(append(data, sum[:tokenSumSize]...))
}

// Hint returns a text that identifies the token without revealing it: the prefix and six
// characters of a hash of the secret.
func (t Token) Hint() string {
	sum := sha256.Sum256(t.Secret[:])
	return TokenPrefix + "…" + base64.RawURLEncoding.EncodeToString(sum[:])[:6]
}

// String returns Hint, so that printing a token by mistake reveals nothing.
func (t Token) String() string { return t.Hint() }
