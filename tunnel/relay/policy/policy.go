// Package policy decides which visitors an endpoint lets in: by address and country, by
// the number of visitors and how much they request, by a password, by the identity that a
// provider confirms, by a client certificate, and by the signature of a webhook. A policy
// is one JSON document. The rules that decide are also the rules that explain a decision.
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
)

// Document is a policy as an operator writes it. The zero value lets everybody in.
type Document struct {
	// Deny and Allow are addresses and CIDRs. Deny takes precedence. If Allow is not
	// empty, only what it contains is let in.
	Deny  []string `json:"deny,omitempty"`
	Allow []string `json:"allow,omitempty"`
	// DenyCountries and AllowCountries are ISO 3166-1 codes such as "CN", or ISO 3166-2
	// codes with a region such as "US-CA". They need the relay's geo database.
	DenyCountries  []string `json:"deny_countries,omitempty"`
	AllowCountries []string `json:"allow_countries,omitempty"`
	// UnknownCountry is "deny" (the default) or "allow". It applies to addresses that the
	// database does not know, and while there is no database.
	UnknownCountry string `json:"unknown_country,omitempty"`
	// Hours says when the target is open. If nil, always.
	Hours *Hours `json:"hours,omitempty"`
	// Connections and ConnectionsPerAddress limit what is open at once: requests,
	// connections or flows. If zero, there is no limit.
	Connections           int `json:"connections,omitempty"`
	ConnectionsPerAddress int `json:"connections_per_address,omitempty"`
	// Rate limits requests (http, https) or new connections per second and address. Burst
	// is how many may come at once; if zero, it equals the rate. If Rate is zero, there
	// is no limit.
	Rate  float64 `json:"rate,omitempty"`
	Burst int     `json:"burst,omitempty"`
	// Bandwidth limits the bytes per second in each direction, shared by all visitors of
	// one node. Excess bytes wait; excess packets of a UDP visitor are dropped. If zero,
	// there is no limit.
	Bandwidth int64 `json:"bandwidth,omitempty"`
	// MaxBody limits a request's body in bytes (http, https). If zero, there is no limit.
	MaxBody int64 `json:"max_body,omitempty"`
	// BasicAuth lists the users that may enter with a password (http, https). Other types
	// cannot ask for one, so a policy with users refuses their visitors.
	BasicAuth []User `json:"basic_auth,omitempty"`
	// SignIn is the identity provider that visitors sign in with (http, https), or nil.
	// With BasicAuth as well, either lets a visitor in. Other types refuse their
	// visitors.
	SignIn *SignIn `json:"sign_in,omitempty"`
	// ClientCertificates lets in visitors that present a certificate (https). If nil,
	// none does. With BasicAuth or SignIn as well, any one of them lets a visitor in.
	// Other types refuse their visitors.
	ClientCertificates *ClientCertificates `json:"client_certificates,omitempty"`
	// Webhooks are the paths that admit only a provider's webhooks (http, https). Other
	// types refuse their visitors.
	Webhooks []Webhook `json:"webhooks,omitempty"`
	// Shadow lets everybody in and records who would have been refused.
	Shadow bool `json:"shadow,omitempty"`
}

// User is a name and its password. Only a hash of the password is stored.
type User struct {
	Name string `json:"name"`
	// Password is hashed and discarded when the policy is set.
	Password string `json:"password,omitempty"`
	// Hash is a hash by bcrypt ($2…) or argon2id ($argon2id$v=19$m=…,t=…,p=…$salt$hash).
	Hash string `json:"hash,omitempty"`
}

// FieldError is the first fault of a document.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

const (
	maxRules = 10_000
	maxUsers = 100
	// MinBandwidth is the lowest limit on a flow: below it, nothing gets through before
	// people lose patience.
	MinBandwidth = 1024
)

var country = regexp.MustCompile(`^[A-Z]{2}(-[A-Z0-9]{1,3})?$`)

// Parse parses a document, checks it and hashes its passwords.
func Parse(data []byte) (Document, error) { return ParseOf("", data) }

// ParseOf is Parse for an owner, a client. Hashing its passwords uses the same turns as
// trying them.
func ParseOf(owner string, data []byte) (Document, error) {
	var d Document
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) { // null would let everybody in
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
	return d, d.check(owner)
}

func (d *Document) check(owner string) error {
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
			hash, err := hashOf(owner, u.Password)
			if err != nil {
				return &FieldError{field + ".password", "cannot be hashed"}
			}
			u.Password, u.Hash = "", hash
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

// Redacted returns the document without its hashes and secrets, for display.
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
