// Package scope describes what a client may have: types of tunnels, names, ports, and limits
// on number and volume. It validates and compares; counting is done elsewhere.
package scope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scope is what a client may have. The zero value sets no limits.
type Scope struct {
	// Types are the allowed tunnel types; empty means all.
	Types []string `json:"types,omitempty"`
	// Domains are patterns: a full name, a label under the relay's domain, "*.NAME" for all
	// names under one, "shop-*" for a part of a label. Empty means all.
	Domains []string `json:"domains,omitempty"`
	// Ports are single ports and ranges such as 20000-20010; empty means all.
	Ports []string `json:"ports,omitempty"`
	// Tunnels is how many tunnels of all the client's agents may run at once; 0 means no
	// limit.
	Tunnels int `json:"tunnels,omitempty"`
	// Expires is when the client's right to connect ends; zero means never.
	Expires time.Time `json:"expires_at,omitzero"`
	// Bandwidth is in bytes per second, in each direction, for all of the client's visitors at
	// one node; 0 means no limit.
	Bandwidth int64 `json:"bandwidth,omitempty"`
	// Monthly is how many bytes visitors may move in a month, both directions together; 0
	// means no limit. OverQuota says what happens after that.
	Monthly   int64  `json:"monthly_bytes,omitempty"`
	OverQuota string `json:"over_quota,omitempty"`
	// Throttle is the bandwidth used by OverThrottle. If zero, DefaultThrottle.
	Throttle int64 `json:"throttle_bandwidth,omitempty"`
	// OwnPolicies allows the client's agents to set the policies of their tunnels.
	OwnPolicies bool `json:"own_policies,omitempty"`
	// UnprovedDomains allows the client to have names outside the relay's domain without
	// proving them by a DNS record.
	UnprovedDomains bool `json:"unproved_domains,omitempty"`
}

// Values of OverQuota: what happens to a client over its quota.
const (
	OverWarn     = "warn"
	OverThrottle = "throttle"
	OverStop     = "stop"
)

// DefaultThrottle is in bytes per second.
const DefaultThrottle = 128 << 10

const (
	maxScopeList = 200
	minBandwidth = 1024
)

// Error is the first fault of a scope.
type Error struct{ Field, Message string }

func (e *Error) Error() string { return e.Field + ": " + e.Message }

var scopeTypes = []string{"http", "https", "tls", "tcp", "udp"}

// Check normalises a scope for storage and returns its first fault.
func (s *Scope) Check() error {
	bad := func(field, format string, args ...any) error {
		return &Error{"scope." + field, fmt.Sprintf(format, args...)}
	}
	for name, list := range map[string][]string{"types": s.Types, "domains": s.Domains, "ports": s.Ports} {
		if len(list) > maxScopeList {
			return bad(name, "has more than %d entries", maxScopeList)
		}
	}
	for i, v := range s.Types {
		s.Types[i] = strings.ToLower(strings.TrimSpace(v))
		if !slices.Contains(scopeTypes, s.Types[i]) {
			return bad(fmt.Sprintf("types[%d]", i), "%q is not one of %s", v, strings.Join(scopeTypes, ", "))
		}
	}
	for i, v := range s.Domains {
		s.Domains[i] = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(v), "."))
		if !validPattern(s.Domains[i]) {
			return bad(fmt.Sprintf("domains[%d]", i), "%q is not a name, a label, or a pattern such as *.example.com or shop-*", v)
		}
	}
	for i, v := range s.Ports {
		s.Ports[i] = strings.ReplaceAll(v, " ", "")
		if _, _, ok := parseSpan(s.Ports[i]); !ok {
			return bad(fmt.Sprintf("ports[%d]", i), "%q is not a port, or a range such as 20000-20010", v)
		}
	}
	switch {
	case s.Tunnels < 0:
		return bad("tunnels", "must not be negative")
	case s.Bandwidth != 0 && s.Bandwidth < minBandwidth:
		return bad("bandwidth", "must be 0, or at least %d bytes a second", minBandwidth)
	case s.Monthly < 0:
		return bad("monthly_bytes", "must not be negative")
	case s.OverQuota != "" && s.OverQuota != OverWarn && s.OverQuota != OverThrottle && s.OverQuota != OverStop:
		return bad("over_quota", "must be warn, throttle or stop")
	case s.Throttle != 0 && s.Throttle < minBandwidth:
		return bad("throttle_bandwidth", "must be 0, or at least %d bytes a second", minBandwidth)
	}
	s.Expires = s.Expires.UTC().Truncate(time.Second)
	return nil
}

func validPattern(p string) bool {
	rest, below := strings.CutPrefix(p, "*.")
	if rest == "" || len(rest) > 253 {
		return false
	}
	for i, label := range strings.Split(rest, ".") {
		if label == "" || len(label) > 63 || (i > 0 || below) && strings.Contains(label, "*") || label == "*" {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '*' {
				return false
			}
		}
	}
	return strings.Count(rest, "*") <= 2
}

func parseSpan(text string) (first, last int, ok bool) {
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	return first, last, err1 == nil && err2 == nil && first >= 1 && first <= last && last <= 65535
}

// AllowsType reports whether the client may have tunnels of a type.
func (s Scope) AllowsType(kind string) bool {
	return len(s.Types) == 0 || slices.Contains(s.Types, kind)
}

// AllowsDomain reports whether the client may have a full name. Patterns of one label are
// relative to base, the relay's domain.
func (s Scope) AllowsDomain(name, base string) bool {
	return len(s.Domains) == 0 || slices.ContainsFunc(s.Domains, func(p string) bool { return matchDomain(p, name, base) })
}

func matchDomain(pattern, name, base string) bool {
	if tail, ok := strings.CutPrefix(pattern, "*."); ok && !strings.Contains(tail, "*") {
		return strings.HasSuffix(name, "."+tail)
	}
	if !strings.Contains(pattern, ".") {
		pattern += "." + base
	}
	head, tail, _ := strings.Cut(pattern, ".")
	label, rest, _ := strings.Cut(name, ".")
	return rest == tail && matchLabel(head, label)
}

// matchLabel matches one label; each * stands for any number of characters.
func matchLabel(pattern, label string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == label
	}
	rest, ok := strings.CutPrefix(label, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// GivenDomain returns what the relay may choose from when it gives the client a name: a name
// under which to add one label, or a list of exact names.
func (s Scope) GivenDomain(base string) (under string, exact []string) {
	if s.AllowsDomain("x."+base, base) && s.AllowsDomain("y1."+base, base) {
		return base, nil
	}
	for _, p := range s.Domains {
		tail, star := strings.CutPrefix(p, "*.")
		switch {
		case strings.Contains(tail, "*"):
		case star && (tail == base || strings.HasSuffix(tail, "."+base)):
			under = tail
		case !star && !strings.Contains(p, "."):
			exact = append(exact, p+"."+base)
		case !star && strings.HasSuffix(p, "."+base):
			exact = append(exact, p)
		}
	}
	return under, exact
}

// AllowsPort reports whether the client may have a port.
func (s Scope) AllowsPort(port int) bool {
	return len(s.Ports) == 0 || slices.ContainsFunc(s.Ports, func(text string) bool {
		first, last, ok := parseSpan(text)
		return ok && port >= first && port <= last
	})
}
