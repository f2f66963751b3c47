package signature

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxSums is how many signatures of one request are examined.
const maxSums = 32

// Request is a request as the visitor sent it, without its body.
type Request struct {
	Header http.Header
	Method string
	// Scheme, Host and Target are from the URL that the visitor requested: https,
	// shop.example.com with or without a port, and /hooks?x=y unchanged.
	Scheme, Host, Target string
}

// Proof is the proof that a request carries.
type Proof struct {
	v              *Verifier
	way            *provider
	request        Request
	before, behind []byte   // signed, with the body in between
	sums           [][]byte // any of them may be right
}

// Read reads the proof from a request that arrived at now. The error tells the operator
// what is wrong with it. The secrets have not been checked yet.
func (v *Verifier) Read(r Request, now time.Time) (*Proof, error) {
	w := v.way(r.Header)
	p := &Proof{v: v, way: w, request: r}
	at, err := p.readSums(r.Header)
	if err != nil {
		return nil, err
	}
	if w.time != "" {
		if at, err = only(r.Header, w.time); err != nil {
			return nil, err
		}
	}
	if w.time != "" || w.key != "" {
		if err := w.clock.recent(at, now); err != nil {
			return nil, err
		}
	}
	var id string
	if w.id != "" {
		if id, err = only(r.Header, w.id); err != nil {
			return nil, err
		}
		if strings.Contains(id, ".") { // it could be signed as another id with another time
			return nil, fmt.Errorf("%s has a dot", w.id)
		}
	}
	if w.signs != "" {
		before, behind, _ := strings.Cut(w.signs, "{body}")
		url := r.url()
		fill := strings.NewReplacer("{id}", id, "{time}", at, "{method}", r.Method, "{url}", url, "{uri}", unescaped.Replace(url))
		p.before, p.behind = []byte(fill.Replace(before)), []byte(fill.Replace(behind))
	}
	return p, nil
}

// way returns the way in which a request is signed.
func (v *Verifier) way(h http.Header) *provider {
	for i := range v.ways {
		if h.Get(v.ways[i].header) != "" {
			return &v.ways[i]
		}
	}
	return &v.ways[0]
}

// readSums reads the signatures, and the time if it is among them.
func (p *Proof) readSums(h http.Header) (at string, err error) {
	for i, name := range p.way.headers() {
		if i > 0 && len(h.Values(name)) == 0 {
			continue
		}
		value, err := only(h, name)
		if err != nil {
			return "", err
		}
		if p.way.between != "" {
			return p.readList(name, value)
		}
		sum, err := p.way.sum(name, value)
		if err != nil {
			return "", err
		}
		p.sums = append(p.sums, sum)
	}
	return "", nil
}

// readList reads a list of signatures such as "t=TIME,v1=HEX,v1=HEX,v0=…": the time, and
// one signature for each of the provider's secrets. Unknown parts prove nothing.
func (p *Proof) readList(name, value string) (at string, err error) {
	timed := false
	for part := range strings.SplitSeq(value, p.way.between) {
		part = strings.TrimLeft(part, " ")
		if text, ok := strings.CutPrefix(part, p.way.key); ok && p.way.key != "" {
			if timed {
				return "", fmt.Errorf("%s has two times", name)
			}
			at, timed = text, true
		} else if sum, err := p.way.sum(name, part); err == nil && len(p.sums) < maxSums {
			p.sums = append(p.sums, sum)
		}
	}
	if len(p.sums) == 0 {
		return "", fmt.Errorf("%s has no %s", name, strings.TrimRight(p.way.prefix, "=,"))
	}
	return at, nil
}

// sum decodes one signature.
func (w *provider) sum(name, value string) ([]byte, error) {
	text, ok := strings.CutPrefix(value, w.prefix)
	if !ok {
		return nil, fmt.Errorf("%s does not begin with %s", name, w.prefix)
	}
	decode := w.decode
	switch {
	case w.token:
		return []byte(text), nil
	case decode == nil:
		decode = hex.DecodeString
	}
	sum, err := decode(text)
	if err != nil || len(sum) == 0 {
		return nil, fmt.Errorf("%s is not encoded as it should be", name)
	}
	return sum, nil
}

// only returns the single value of a header. If there were two, the origin might use the
// other one.
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

// clock says how a signed time is written.
type clock int

const (
	seconds clock = iota // since 1970
	milliseconds
	rfc3339
)

func (c clock) read(text string) (time.Time, error) {
	if c == rfc3339 {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return at, errors.New("its signed time is not as RFC 3339 has it")
		}
		return at, nil
	}
	most, unit, from := 12, "seconds", func(n int64) time.Time { return time.Unix(n, 0) }
	if c == milliseconds {
		most, unit, from = 15, "milliseconds", time.UnixMilli
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(text) > most || strings.Trim(text, "0123456789") != "" {
		return time.Time{}, fmt.Errorf("its signed time is not a number of %s", unit)
	}
	return from(n), nil
}

// recent checks that a signed time is recent.
func (c clock) recent(text string, now time.Time) error {
	at, err := c.read(text)
	if err != nil {
		return err
	}
	switch off := now.Sub(at); {
	case off > Tolerance:
		return fmt.Errorf("it was signed at %s, too long ago", at.UTC().Format(time.RFC3339))
	case off < -Tolerance:
		return fmt.Errorf("it was signed at %s, which is yet to come", at.UTC().Format(time.RFC3339))
	}
	return nil
}

var usualPort = map[string]string{"http": "80", "https": "443"}

// host returns the requested host and its port, which may be implied by the scheme.
func (r Request) host() (name, port string) {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return strings.TrimSuffix(r.Host, ":"+port), port
	}
	return r.Host, usualPort[r.Scheme]
}

// url returns the requested URL, without the scheme's usual port.
func (r Request) url() string {
	name, port := r.host()
	if port != usualPort[r.Scheme] {
		name += ":" + port
	}
	return r.Scheme + "://" + name + r.Target
}

// unescaped decodes what HubSpot decodes in a URL before signing it; see "Validate the v3
// request signature" in its documentation.
var unescaped = strings.NewReplacer(
	"%3A", ":", "%3a", ":", "%2F", "/", "%2f", "/", "%3F", "?", "%3f", "?", "%40", "@", "%21", "!", "%24", "$",
	"%27", "'", "%28", "(", "%29", ")", "%2A", "*", "%2a", "*", "%2C", ",", "%2c", ",", "%3B", ";", "%3b", ";",
)
