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

// Webhook lets in a provider's webhooks, at a path and below it, and nobody else
// there. Who else it is does not matter: no password is asked for.
type Webhook struct {
	// Path begins with a slash; empty or "/": every path. Upper and lower case are
	// the same.
	Path string `json:"path"`
	// Provider is one of signature.Providers. Two of one path may both come there.
	Provider string `json:"provider"`
	// Secrets are those any of which may have signed, at most three.
	Secrets []signature.Secret `json:"secrets,omitempty"`
	// The rest is for the provider hmac: the header that has the HMAC of the body,
	// how it was made (sha256, sha512 or sha1; if empty sha256), how it is written
	// (hex or base64; if empty hex), and what comes before it.
	Header    string `json:"header,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
}

// Bounds of a policy's webhooks, and of what a request to one may have.
const (
	maxWebhooks = 50
	// MaxWebhookBody is the longest body that is held to be checked, unless MaxBody is
	// less. GitHub's, the longest of which a provider's documents tell, end at 25 MB.
	MaxWebhookBody = 32 << 20
)

// SameAs reports whether a webhook is the one that another edits.
func (h Webhook) SameAs(other Webhook) bool {
	return h.Provider == other.Provider && strings.EqualFold(hookPath(h.Path), hookPath(other.Path))
}

func (h Webhook) verifier() (*signature.Verifier, error) {
	return signature.New(signature.Scheme{
		Provider: h.Provider, Header: h.Header, Algorithm: h.Algorithm, Encoding: h.Encoding, Prefix: h.Prefix,
	}, h.Secrets)
}

// hookPath writes a path as it is compared.
func hookPath(path string) string {
	if path = strings.TrimRight(path, "/"); path == "" {
		return "/"
	}
	return path
}

// checkWebhooks finds the first fault, and writes paths as they are compared.
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

// withoutSecrets is a copy of list for eyes.
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
	unknown   []string // what is said of providers without one, which only a newer version knows
}

// hooks are a policy's, the longest path first.
type hooks []*Hook

// hooksOf makes a checked document's webhooks ready. One that cannot be read lets
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

// of returns the webhooks that a path, as one origin may read it, is for; nil: none.
func (all hooks) of(path string, same func(a, b string) bool) *Hook {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, h := range all {
		if len(h.segments) <= len(segments) && slices.EqualFunc(h.segments, segments[:len(h.segments)], same) {
			return h
		}
	}
	return nil
}

// find returns the webhooks that a request's target is for; nil: none. It reports
// false if that is not sure, since origins differ in what they take the target for.
// Then the request must not go on: with a signature it would be let in to where a
// password may be asked for, and without one to where a signature is.
func (all hooks) find(target string) (*Hook, bool) {
	if len(all) == 0 {
		return nil, true
	}
	if len(all[0].segments) == 0 { // there is one, of every path
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
	if len(paths) == 1 { // so has what is left of it
		return first, true
	}
	// An origin may be asked without the beginning of the path, which the tunnel leads
	// to it (wire.StripPath). To that one .. leads no higher than to there.
	for at := 1; at < len(path); at++ {
		if path[at] != '/' {
			continue
		}
		taken := decoded(path[:at])
		if !all.below(taken) {
			break // nor is any below what is longer
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

// below reports whether one of the webhooks' paths is below a path.
func (all hooks) below(path string) bool {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	return slices.ContainsFunc(all, func(h *Hook) bool {
		return len(h.segments) > len(segments) && slices.EqualFunc(segments, h.segments[:len(segments)], strings.EqualFold)
	})
}

// Signs are what a request to webhooks has for proof. They are yet to be found
// right or wrong.
type Signs struct {
	proofs []*signature.Proof
	body   bool
}

// Read reads a request at a moment. If it has nothing for proof it refuses.
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

// Decide lets a request in whose signature is right: body writes all of the body,
// each time that it is asked to.
func (s *Signs) Decide(body func(io.Writer)) (signature.Print, Decision) {
	for _, proof := range s.proofs {
		if print, ok := proof.Proves(body); ok {
			return print, Decision{Allowed: true}
		}
	}
	return signature.Print{}, Decision{Rule: RuleWebhook, Detail: "no secret matches its signature"}
}

// knows reports whether a secret that let a visitor in is still one of these.
func (h *Hook) knows(p signature.Print) bool {
	return slices.ContainsFunc(h.verifiers, func(v *signature.Verifier) bool { return v.Knows(p) })
}

// HasWebhooks reports whether there are paths that are webhooks'.
func (p *Policy) HasWebhooks() bool { return len(p.hooks) > 0 }

// hook says which webhooks a request is to; a decision that refuses if that cannot
// be said, or a request of this type has no path.
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

// hookSteps explains what webhooks make of a request, and reports whether anything
// but its signature is asked for.
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
