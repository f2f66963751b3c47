package policy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/signature"
)

// Webhook lets in only a provider's webhooks, at a path and below it. Nothing else is
// asked of them, not even a password.
type Webhook struct {
	// Path begins with a slash. If empty or "/", it covers every path. Case does not
	// matter.
	Path string `json:"path"`
	// Provider is one of signature.Providers. Two providers may share a path.
	Provider string `json:"provider"`
	// Secrets are the secrets that may have signed, at most three.
	Secrets []signature.Secret `json:"secrets,omitempty"`
	// The remaining fields are for the provider hmac: the header with the HMAC of the
	// body, its algorithm (sha256, sha512 or sha1; if empty, sha256), its encoding (hex
	// or base64; if empty, hex), and what precedes it.
	Header    string `json:"header,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
}

// Limits on a policy's webhooks, and on what a request to one may contain.
const (
	maxWebhooks = 50
	// MaxWebhookBody is the longest body that is held for verification, unless MaxBody is
	// less. The longest documented by any provider are GitHub's, up to 25 MB.
	MaxWebhookBody = 32 << 20
)

// SameAs reports whether a webhook is the one that other edits.
func (h Webhook) SameAs(other Webhook) bool {
	return h.Provider == other.Provider && strings.EqualFold(hookPath(h.Path), hookPath(other.Path))
}

func (h Webhook) verifier() (*signature.Verifier, error) {
	return signature.New(signature.Scheme{
		Provider: h.Provider, Header: h.Header, Algorithm: h.Algorithm, Encoding: h.Encoding, Prefix: h.Prefix,
	}, h.Secrets)
}

// hookPath normalises a path for comparison.
func hookPath(path string) string {
	if path = strings.TrimRight(path, "/"); path == "" {
		return "/"
	}
	return path
}

// checkWebhooks returns the first fault, and normalises paths for comparison.
func checkWebhooks(list []Webhook) error {
	if len(list) > maxWebhooks {
		return &FieldError{"webhooks", fmt.Sprintf("has more than %d webhooks", maxWebhooks)}
	}
	for i := range list {
		h, field := &list[i], fmt.Sprintf("webhooks[%d]", i)
		h.Path = hookPath(h.Path)
		switch {
		case !strings.HasPrefix(h.Path, "/"):
			return &FieldError{field + ".path", "must begin with a slash, such as /hooks/github"}
		case len(h.Path) > 512 || !plain(h.Path) || strings.Contains(h.Path, "*"):
			return &FieldError{field + ".path", "must be plain, such as /hooks/github: no encoded characters, wildcards, parameters, nor segments that are empty or begin or end with a dot"}
		case strings.HasPrefix(strings.ToLower(h.Path)+"/", "/.adit/"):
			return &FieldError{field + ".path", "is the relay's own"}
		case slices.ContainsFunc(list[:i], h.SameAs):
			return &FieldError{field + ".path", "is a duplicate for this provider; a webhook may have several secrets"}
		}
		_, err := h.verifier()
		if fault := (*signature.FieldError)(nil); errors.As(err, &fault) {
			return &FieldError{field + "." + fault.Field, fault.Message}
		}
	}
	return nil
}

// withoutSecrets returns a copy of list for display.
func withoutSecrets(list []Webhook) []Webhook {
	list = slices.Clone(list)
	for i := range list {
		list[i].Secrets = nil
	}
	return list
}

// Hook is the webhooks of one path.
type Hook struct {
	path      string
	segments  []string
	providers []string
	verifiers []*signature.Verifier
	unknown   []string // messages about providers without a verifier, which only a newer version knows
}

// hooks are the webhooks of a policy, longest path first.
type hooks []*Hook

// hooksOf prepares a checked document's webhooks for use. One that cannot be parsed lets
// nobody in.
func hooksOf(list []Webhook) hooks {
	var all hooks
	for _, w := range list {
		path := hookPath(w.Path)
		i := slices.IndexFunc(all, func(h *Hook) bool { return strings.EqualFold(h.path, path) })
		if i < 0 {
			h := &Hook{path: path}
			if path != "/" {
				h.segments = strings.Split(path[1:], "/")
			}
			i, all = len(all), append(all, h)
		}
		all[i].providers = append(all[i].providers, w.Provider)
		if v, err := w.verifier(); err == nil {
			all[i].verifiers = append(all[i].verifiers, v)
		} else {
			all[i].unknown = append(all[i].unknown, fmt.Sprintf("this version cannot verify the webhooks of %q", w.Provider))
		}
	}
	slices.SortStableFunc(all, func(a, b *Hook) int { return len(b.segments) - len(a.segments) })
	return all
}

// of returns the webhooks for a path, as one origin may understand it, or nil.
func (all hooks) of(path string, same func(a, b string) bool) *Hook {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, h := range all {
		if len(h.segments) <= len(segments) && slices.EqualFunc(h.segments, segments[:len(h.segments)], same) {
			return h
		}
	}
	return nil
}

// find returns the webhooks for a request's target, or nil if there are none. It reports
// false if that is uncertain, since origins differ in how they understand the target.
// Such a request must not continue: with a signature it could get in where a password is
// required, and without one where a signature is.
func (all hooks) find(target string) (*Hook, bool) {
	if len(all) == 0 {
		return nil, true
	}
	if len(all[0].segments) == 0 { // there is only one, for every path
		return all[0], true
	}
	path, _, _ := strings.Cut(target, "?")
	var r reader
	paths, every := r.readings(path)
	first := all.of(path, func(a, b string) bool { return a == b })
	if !every {
		return nil, false
	}
	sure := func(p string) bool {
		return all.of(p, strings.EqualFold) == first && all.of(p, func(a, b string) bool { return a == b }) == first
	}
	for _, p := range paths {
		if !sure(p) {
			return nil, false
		}
	}
	if len(paths) == 1 { // then the rest of the path has a single reading, too
		return first, true
	}
	// An origin may receive the path without its beginning, which the tunnel strips
	// (wire.StripPath). For such an origin, .. cannot lead above that point.
	for at := 1; at < len(path); at++ {
		if path[at] != '/' {
			continue
		}
		taken := decoded(path[:at])
		if !all.below(taken) {
			break // nor below any longer prefix
		}
		rest, every := r.readings(path[at:])
		if !every {
			return nil, false
		}
		for _, p := range rest {
			if !sure(taken + p) {
				return nil, false
			}
		}
	}
	return first, true
}

// below reports whether any webhook's path is below a path.
func (all hooks) below(path string) bool {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	return slices.ContainsFunc(all, func(h *Hook) bool {
		return len(h.segments) > len(segments) && slices.EqualFunc(segments, h.segments[:len(segments)], strings.EqualFold)
	})
}

// Signs are the proofs that a request to webhooks carries. They have not been verified.
type Signs struct {
	proofs []*signature.Proof
	body   bool
}

// Read reads the proofs from a request that arrived at now. It refuses a request without
// any.
func (h *Hook) Read(r signature.Request, now time.Time) (*Signs, Decision) {
	s, faults := new(Signs), slices.Clone(h.unknown)
	for _, v := range h.verifiers {
		proof, err := v.Read(r, now)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		s.proofs = append(s.proofs, proof)
		s.body = s.body || v.NeedsBody()
	}
	if len(s.proofs) == 0 {
		return nil, Decision{Rule: RuleWebhook, Detail: strings.Join(faults, "; ")}
	}
	return s, Decision{Allowed: true}
}

// NeedsBody reports whether the body is signed.
func (s *Signs) NeedsBody() bool { return s.body }

// Decide lets in a request with a valid signature. body writes the whole body each time
// it is called.
func (s *Signs) Decide(body func(io.Writer)) (signature.Print, Decision) {
	for _, proof := range s.proofs {
		if print, ok := proof.Proves(body); ok {
			return print, Decision{Allowed: true}
		}
	}
	return signature.Print{}, Decision{Rule: RuleWebhook, Detail: "no secret matches its signature"}
}

// knows reports whether the secret that let a visitor in is still valid.
func (h *Hook) knows(p signature.Print) bool {
	return slices.ContainsFunc(h.verifiers, func(v *signature.Verifier) bool { return v.Knows(p) })
}

// HasWebhooks reports whether any paths belong to webhooks.
func (p *Policy) HasWebhooks() bool { return len(p.hooks) > 0 }

// hook returns the webhooks that a request is for. The decision refuses if that is
// uncertain, or if a request of this type has no path.
func (p *Policy) hook(isHTTP bool, target string) (*Hook, Decision) {
	switch h, sure := p.hooks.find(target); {
	case len(p.hooks) > 0 && !isHTTP:
		return nil, Decision{Rule: RuleWebhook, Detail: "this type of tunnel cannot verify webhooks"}
	case !sure:
		return nil, Decision{Rule: RuleWebhookPath, Detail: "origins differ in what they take the path for"}
	default:
		return h, Decision{Allowed: true}
	}
}

// hookSteps explains what the webhooks make of a request, and reports whether only the
// signature matters.
func (p *Policy) hookSteps(r Request) (steps []Step, only bool) {
	if len(p.hooks) == 0 {
		return nil, false
	}
	h, d := p.hook(r.HTTP, r.Target)
	switch {
	case !d.Allowed:
		return []Step{{d.Rule, true, d.Detail}}, true
	case h == nil:
		return []Step{{RuleWebhook, false, "the path does not belong to a webhook"}}, false
	}
	who := strings.Join(h.providers, " or ")
	if r.Signed {
		return []Step{{RuleWebhook, false, "signed by " + who + ", for " + h.path}}, true
	}
	return []Step{{RuleWebhook, true, "a request to " + h.path + " must be signed by " + who}}, true
}
