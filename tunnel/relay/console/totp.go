package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// One-time codes according to RFC 6238, with the parameters that authenticator apps
// assume: SHA-1, six digits, steps of 30 s.
const (
	totpStep      = 30 // seconds
	totpDigits    = 6
	totpSkew      = 1 // steps by which a clock may be off in either direction
	totpSecret    = 20
	recoveryCodes = 10
)

var base32Plain = base32.StdEncoding.WithPadding(base32.NoPadding)

// newTOTPSecret returns a secret in the format that apps accept.
func newTOTPSecret() string {
	b := make([]byte, totpSecret)
	rand.Read(b)
	return base32Plain.EncodeToString(b)
}

// totpURI returns what an app reads from a QR code (Google Authenticator's Key URI
// format).
func totpURI(issuer, account, secret string) string {
	return "otpauth://totp/" + url.PathEscape(issuer+":"+account) + "?" + url.Values{
		"secret": {secret}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {"6"}, "period": {"30"},
	}.Encode()
}

// totpCode returns the code of a step (RFC 4226 section 5.3).
func totpCode(key []byte, step int64) string {
	mac := hmac.New(sha1.New, key)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", totpDigits, n%1_000_000)
}

// checkTOTP returns the step of a code, if that step is close to now and later than the
// last one used, so that each code works once.
func checkTOTP(secret, code string, now time.Time, last int64) (step int64, ok bool) {
	key, err := base32Plain.DecodeString(secret)
	if err != nil || len(key) == 0 || len(code) != totpDigits {
		return 0, false
	}
	for s := now.Unix()/totpStep - totpSkew; s <= now.Unix()/totpStep+totpSkew; s++ {
		if subtle.ConstantTimeCompare([]byte(totpCode(key, s)), []byte(code)) == 1 && s > last {
			step, ok = s, true
		}
	}
	return step, ok
}

// newRecoveryCodes returns codes for a lost phone, and the hashes to store. A code has 50
// random bits and guesses are counted, so a plain hash is enough.
func newRecoveryCodes() (codes, kept []string) {
	for range recoveryCodes {
		text := strings.ToLower(rand.Text()[:10])
		codes = append(codes, text[:5]+"-"+text[5:])
		kept = append(kept, recoveryHash(text))
	}
	return codes, kept
}

func recoveryHash(code string) string {
	sum := sha256.Sum256([]byte(plainCode(code)))
	return hex.EncodeToString(sum[:])
}

// plainCode normalises a code as people type it, by removing separators.
func plainCode(code string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, code))
}
