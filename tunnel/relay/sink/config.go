package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The types of sinks.
const (
	Webhook = "webhook"
	Syslog  = "syslog"
)

// Config is a sink as it is stored.
type Config struct {
	Type        string   `json:"type"`
	URL         string   `json:"url,omitempty"`      // webhook
	Secret      string   `json:"secret,omitempty"`   // webhook
	Address     string   `json:"address,omitempty"`  // syslog: udp://, tcp:// or tls://HOST:PORT
	CA          string   `json:"ca,omitempty"`       // syslog over tls, PEM
	Facility    *int     `json:"facility,omitempty"` // syslog; nil: 16, local0
	Events      []string `json:"events,omitempty"`   // empty: access
	RefusedOnly bool     `json:"refused_only,omitempty"`
	Enabled     *bool    `json:"enabled,omitempty"` // nil: yes
}

// FieldError is the first fault of a sink.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

var validSinkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,30}[a-z0-9])?$`)

// ValidName reports whether a sink may have a name.
func ValidName(name string) bool { return validSinkName.MatchString(name) }

// Parse parses a sink strictly and checks it. private allows private addresses.
func Parse(data []byte, private bool) (Config, error) {
	var c Config
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return c, &FieldError{strings.Trim(name, `"`), "there is no such field"}
		}
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return c, &FieldError{kind.Field, "must not be a JSON " + kind.Value}
		}
		return c, &FieldError{"sink", "is not a JSON object"}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c, &FieldError{"sink", "something follows the JSON object"}
	}
	return c, c.check(private)
}

func (c *Config) check(private bool) error {
	if len(c.Events) == 0 {
		c.Events = []string{Access}
	}
	for i, e := range c.Events {
		if !slices.Contains([]string{Access, Audit, Clients}, e) || slices.Contains(c.Events[:i], e) {
			return &FieldError{fmt.Sprintf("events[%d]", i), "must be access, audit or client, each once"}
		}
	}
	switch c.Type {
	case Webhook:
		u, err := url.Parse(c.URL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(c.URL) > 2048:
			return &FieldError{"url", "must be a URL such as https://siem.example.com/adit"}
		case u.User != nil:
			return &FieldError{"url", "must not have a user and password; use secret"}
		case c.Address != "" || c.CA != "" || c.Facility != nil:
			return &FieldError{"address", "address, ca and facility are syslog's"}
		case len(c.Secret) > 512:
			return &FieldError{"secret", "has more than 512 bytes"}
		}
		return hostAllowed("url", u.Hostname(), private)
	case Syslog:
		u, err := url.Parse(c.Address)
		if err != nil || !slices.Contains([]string{"udp", "tcp", "tls"}, u.Scheme) || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return &FieldError{"address", "must be udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT"}
		}
		switch {
		case c.URL != "" || c.Secret != "":
			return &FieldError{"url", "url and secret are a webhook's"}
		case c.Facility != nil && (*c.Facility < 0 || *c.Facility > 23):
			return &FieldError{"facility", "must be 0 to 23"}
		case c.CA != "" && u.Scheme != "tls":
			return &FieldError{"ca", "is for tls:// only"}
		}
		if _, err := tlsConfig(u.Hostname(), c.CA); err != nil {
			return &FieldError{"ca", "has no certificate in PEM"}
		}
		return hostAllowed("address", u.Hostname(), private)
	}
	return &FieldError{"type", "must be webhook or syslog"}
}

// On reports whether the sink is enabled.
func (c Config) On() bool { return c.Enabled == nil || *c.Enabled }

// wants reports whether an event goes to the sink while it is enabled.
func (c Config) wants(e Event) bool {
	return slices.Contains(c.Events, e.Type) && (e.Access == nil || !c.RefusedOnly || e.Access.Refused != "")
}
