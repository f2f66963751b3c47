// Package policy decides which visitors an endpoint lets in: by their address
// and country, by how many there are and how much they ask for, by a password, by
// who an identity provider says they are, by a client certificate, and by the
// signature of a webhook. One JSON document says it all; the same rules that decide
// also explain.
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// Document is a policy as an operator writes it. The zero value lets everybody in.
type Document struct {
	// Deny and Allow are addresses and CIDRs. Deny goes first; if Allow is not
	// empty, only what it names is let in.
	Deny  []string `json:"deny,omitempty"`
	Allow []string `json:"allow,omitempty"`
	// DenyCountries and AllowCountries are ISO 3166-1 codes, as "CN", or with a
	// region of ISO 3166-2, as "US-CA". They need the relay's geo database.
	DenyCountries  []string `json:"deny_countries,omitempty"`
	AllowCountries []string `json:"allow_countries,omitempty"`
	// UnknownCountry is "deny" (the default) or "allow": for addresses that the
	// database does not know, and while there is no database.
	UnknownCountry string `json:"unknown_country,omitempty"`
	// Hours are when the target is open; nil: always.
	Hours *Hours `json:"hours,omitempty"`
	// Connections and ConnectionsPerAddress bound what is open at once:
	// requests, connections or flows. Zero: not bounded.
	Connections           int `json:"connections,omitempty"`
	ConnectionsPerAddress int `json:"connections_per_address,omitempty"`
	// Rate is requests (http, https) or new connections a second and address;
	// Burst is how many may come at once, if zero the rate. Zero: not bounded.
	Rate  float64 `json:"rate,omitempty"`
	Burst int     `json:"burst,omitempty"`
	// Bandwidth is bytes a second in each direction, shared by all visitors of
	// one node. What is too much waits; a UDP visitor's packets are dropped.
	// Zero: not bounded.
	Bandwidth int64 `json:"bandwidth,omitempty"`
	// MaxBody bounds a request's body in bytes (http, https). Zero: not bounded.
	MaxBody int64 `json:"max_body,omitempty"`
	// BasicAuth are the users that a password is asked of (http, https). Other
	// types cannot ask, so a policy with users refuses their visitors.
	BasicAuth []User `json:"basic_auth,omitempty"`
	// SignIn is the identity provider that visitors sign in with (http, https);
	// nil: none. Beside BasicAuth either lets in. Other types refuse their visitors.
	SignIn *SignIn `json:"sign_in,omitempty"`
	// ClientCertificates let in who presents one (https); nil: none does. Beside
	// BasicAuth and SignIn any of them lets in. Other types refuse their visitors.
	ClientCertificates *ClientCertificates `json:"client_certificates,omitempty"`
	// Webhooks are the paths at which a provider's webhooks are let in, and nobody
	// else (http, https). Other types refuse their visitors.
	Webhooks []Webhook `json:"webhooks,omitempty"`
	// Shadow lets everybody in and records who would have been refused.
	Shadow bool `json:"shadow,omitempty"`
}

// User is a name and its password, which is kept as a hash only.
type User struct {
	Name string `json:"name"`
	// Password is hashed and forgotten when the policy is set.
	Password string `json:"password,omitempty"`
	// Hash is bcrypt's ($2…) or argon2id's ($argon2id$v=19$m=…,t=…,p=…$salt$hash).
	Hash string `json:"hash,omitempty"`
}

// FieldError is a document's first fault.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

const (
	maxRules = 10_000
	maxUsers = 100
	// MinBandwidth is the least that a flow may be held to: below it nothing
	// gets through before somebody's patience ends.
	MinBandwidth = 1024
)

var country = regexp.MustCompile(`^[A-Z]{2}(-[A-Z0-9]{1,3})?$`)

// Parse reads a document, checks it and hashes its passwords.
func Parse(data []byte) (Document, error) {
	var d Document
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) { // null would be one that lets everybody in
		return d, &FieldError{"policy", "is not a JSON object"}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return d, &FieldError{strings.Trim(name, `"`), "there is no such field"}
		}
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return d, &FieldError{kind.Field, "must not be a JSON " + kind.Value}
		}
		return d, &FieldError{"policy", "is not a JSON object"}
	}
	if _, err := dec.Token(); err != io.EOF {
		return d, &FieldError{"policy", "something follows the JSON object"}
	}
	return d, d.check()
}

func (d *Document) check() error {
	for _, l := range []struct {
		name string
		list []string
	}{{"deny", d.Deny}, {"allow", d.Allow}} {
		if len(l.list) > maxRules {
			return &FieldError{l.name, fmt.Sprintf("has more than %d rules", maxRules)}
		}
		for i, text := range l.list {
			if _, err := parsePrefix(text); err != nil {
				return &FieldError{fmt.Sprintf("%s[%d]", l.name, i), fmt.Sprintf("%q is not an address or CIDR", text)}
			}
		}
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"deny_countries", d.DenyCountries}, {"allow_countries", d.AllowCountries}} {
		if len(l.list) > maxRules {
			return &FieldError{l.name, fmt.Sprintf("has more than %d rules", maxRules)}
		}
		for i, text := range l.list {
			l.list[i] = strings.ToUpper(text)
			if !country.MatchString(l.list[i]) {
				return &FieldError{fmt.Sprintf("%s[%d]", l.name, i), fmt.Sprintf("%q is not a country such as CN, or a region such as US-CA", text)}
			}
		}
	}
	switch {
	case d.UnknownCountry != "" && d.UnknownCountry != "deny" && d.UnknownCountry != "allow":
		return &FieldError{"unknown_country", "must be deny or allow"}
	case d.Connections < 0:
		return &FieldError{"connections", "must not be negative"}
	case d.ConnectionsPerAddress < 0:
		return &FieldError{"connections_per_address", "must not be negative"}
	case d.Rate < 0 || d.Rate > 1e6:
		return &FieldError{"rate", "must be 0 to 1000000"}
	case d.Burst < 0 || d.Burst > 1e6:
		return &FieldError{"burst", "must be 0 to 1000000"}
	case d.MaxBody < 0:
		return &FieldError{"max_body", "must not be negative"}
	case d.Bandwidth != 0 && d.Bandwidth < MinBandwidth:
		return &FieldError{"bandwidth", fmt.Sprintf("must be 0, or at least %d bytes a second", MinBandwidth)}
	case len(d.BasicAuth) > maxUsers:
		return &FieldError{"basic_auth", fmt.Sprintf("has more than %d users", maxUsers)}
	}
	if d.Hours != nil {
		if err := d.Hours.check(); err != nil {
			return err
		}
	}
	if err := d.SignIn.check(); err != nil {
		return err
	}
	if err := d.ClientCertificates.check(); err != nil {
		return err
	}
	if err := checkWebhooks(d.Webhooks); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range d.BasicAuth {
		u, field := &d.BasicAuth[i], fmt.Sprintf("basic_auth[%d]", i)
		switch {
		case u.Name == "" || strings.Contains(u.Name, ":") || len(u.Name) > 128:
			return &FieldError{field + ".name", "must have 1 to 128 bytes and no colon"}
		case seen[u.Name]:
			return &FieldError{field + ".name", "is a duplicate"}
		case u.Password == "" && u.Hash == "":
			return &FieldError{field + ".password", "is missing"}
		case len(u.Password) > 72:
			return &FieldError{field + ".password", "has more than 72 bytes"}
		}
		seen[u.Name] = true
		if u.Password != "" {
			hash, err := bcrypt.GenerateFromPassword([]byte(u.Password), bcrypt.DefaultCost)
			if err != nil {
				return &FieldError{field + ".password", "cannot be hashed"}
			}
			u.Password, u.Hash = "", string(hash)
		}
		if !validHash(u.Hash) {
			return &FieldError{field + ".hash", "is neither bcrypt's nor argon2id's"}
		}
	}
	return nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, err
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Redacted is the document without its hashes and secrets, for eyes.
func (d Document) Redacted() Document {
	users := make([]User, len(d.BasicAuth))
	for i, u := range d.BasicAuth {
		users[i] = User{Name: u.Name}
	}
	if len(users) > 0 {
		d.BasicAuth = users
	}
	d.Webhooks = withoutSecrets(d.Webhooks)
	return d
}
