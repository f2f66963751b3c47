package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxSums is how many signatures of one header are looked at.
const maxSums = 32

// only returns the one value of a header. Of two, the origin might take the other.
func only(h http.Header, name string) (string, error) {
	switch values := h.Values(name); {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", fmt.Errorf("there is no %s", name)
	case len(values) > 1:
		return "", fmt.Errorf("%s comes more than once", name)
	default:
		return values[0], nil
	}
}

// sum reads a signature from a header's value.
func (v *Verifier) sum(name, prefix, value string) ([]byte, error) {
	text, ok := strings.CutPrefix(value, prefix)
	if !ok {
		return nil, fmt.Errorf("%s does not begin with %s", name, prefix)
	}
	sum, err := v.decode(text)
	if err != nil || len(sum) == 0 {
		return nil, fmt.Errorf("%s is not encoded as it should be", name)
	}
	return sum, nil
}

// recent checks a signed time.
func recent(text string, now time.Time) error {
	if text == "" || len(text) > 12 || strings.Trim(text, "0123456789") != "" {
		return errors.New("its signed time is not a number of seconds")
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("its signed time is not a number of seconds")
	}
	at := time.Unix(seconds, 0)
	switch off := now.Sub(at); {
	case off > Tolerance:
		return fmt.Errorf("it was signed at %s, too long ago", at.UTC().Format(time.RFC3339))
	case off < -Tolerance:
		return fmt.Errorf("it was signed at %s, which is yet to come", at.UTC().Format(time.RFC3339))
	}
	return nil
}

// timed is how a provider signs that puts the time into a header of its own.
type timed struct {
	time, sum, prefix string
	before, behind    string // the time, in what is signed; the body follows
}

func (v *Verifier) readTimed(h http.Header, now time.Time, t timed) (*Proof, error) {
	at, err := only(h, t.time)
	if err != nil {
		return nil, err
	}
	value, err := only(h, t.sum)
	if err != nil {
		return nil, err
	}
	if err := recent(at, now); err != nil {
		return nil, err
	}
	sum, err := v.sum(t.sum, t.prefix, value)
	return &Proof{v: v, before: []byte(t.before + at + t.behind), sums: [][]byte{sum}}, err
}

// readStripe reads "t=TIME,v1=HEX,v1=HEX,v0=…": the time, and a signature for each
// secret that Stripe has of the endpoint. Versions that are not known prove nothing.
func (v *Verifier) readStripe(h http.Header, now time.Time) (*Proof, error) {
	const name = "Stripe-Signature"
	value, err := only(h, name)
	if err != nil {
		return nil, err
	}
	p, at := &Proof{v: v}, ""
	for part := range strings.SplitSeq(value, ",") {
		key, text, _ := strings.Cut(part, "=")
		switch {
		case key == "t" && at != "":
			return nil, fmt.Errorf("%s has two times", name)
		case key == "t":
			at = text
		case key == "v1" && len(p.sums) < maxSums:
			if sum, err := v.sum(name, "", text); err == nil {
				p.sums = append(p.sums, sum)
			}
		}
	}
	if len(p.sums) == 0 {
		return nil, fmt.Errorf("%s has no v1", name)
	}
	p.before = []byte(at + ".")
	return p, recent(at, now)
}

// readStandard reads the three headers of Standard Webhooks, or Svix' names of
// them. The signatures are in one, with a space between: "v1,BASE64 v1,BASE64".
func (v *Verifier) readStandard(h http.Header, now time.Time) (*Proof, error) {
	family := "Webhook"
	if h.Get("Webhook-Signature") == "" && h.Get("Svix-Signature") != "" {
		family = "Svix"
	}
	var values [3]string
	for i, name := range []string{"Id", "Timestamp", "Signature"} {
		var err error
		if values[i], err = only(h, family+"-"+name); err != nil {
			return nil, err
		}
	}
	id, at := values[0], values[1]
	if strings.Contains(id, ".") { // it would be signed as another id with another time
		return nil, fmt.Errorf("%s-Id has a dot", family)
	}
	p := &Proof{v: v, before: []byte(id + "." + at + ".")}
	for text := range strings.FieldsSeq(values[2]) {
		if sum, err := v.sum(family+"-Signature", "v1,", text); err == nil && len(p.sums) < maxSums {
			p.sums = append(p.sums, sum)
		}
	}
	if len(p.sums) == 0 {
		return nil, fmt.Errorf("%s-Signature has no v1", family)
	}
	return p, recent(at, now)
}

// Print tells one secret of a provider from another without telling it.
type Print [sha256.Size]byte

func (v *Verifier) print(i int) Print {
	return sha256.Sum256(append([]byte(v.scheme.Provider+"\x00"), v.keys[i]...))
}

// Knows reports whether a secret that proved something is one of these.
func (v *Verifier) Knows(p Print) bool {
	for i := range v.keys {
		if v.print(i) == p {
			return true
		}
	}
	return false
}

// Proves reports whether one of the secrets signed the body, and which. The body is
// asked for once for each secret at most, and not at all unless NeedsBody.
func (p *Proof) Proves(body func(io.Writer)) (Print, bool) {
	for i, key := range p.v.keys {
		if p.provedBy(i, key, body) {
			return p.v.print(i), true
		}
	}
	return Print{}, false
}

// whole is a text in one piece, unless it is longer than what is left for it.
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

func (p *Proof) provedBy(i int, key []byte, body func(io.Writer)) bool {
	switch p.v.scheme.Provider {
	case GitLab:
		// Of sums, so that the time tells nothing of the length either.
		got, want := sha256.Sum256([]byte(p.token)), sha256.Sum256(key)
		return hmac.Equal(got[:], want[:])
	case Discord:
		text := whole{p.before, maxDiscord}
		body(&text)
		return text.left >= 0 && len(p.sums[0]) == ed25519.SignatureSize && ed25519.Verify(p.v.publics[i], text.b, p.sums[0])
	}
	mac := hmac.New(p.v.hash, key)
	mac.Write(p.before)
	body(mac)
	want, right := mac.Sum(nil), false
	for _, sum := range p.sums {
		right = hmac.Equal(sum, want) || right
	}
	return right
}
