package policies

import (
	"errors"
	"slices"
	"strings"

	"adit/tunnel/relay/policy"
)

// silence is what of a document comes without its secrets and keeps those that it
// has.
type silence struct {
	users    []string
	webhooks []policy.Webhook
}

func silenceOf(d policy.Document) silence {
	var s silence
	for _, u := range d.BasicAuth {
		if u.Password == "" && u.Hash == "" {
			s.users = append(s.users, u.Name)
		}
	}
	for _, w := range d.Webhooks {
		if len(w.Secrets) == 0 {
			s.webhooks = append(s.webhooks, w)
		}
	}
	return s
}

func (s silence) any() bool { return len(s.users)+len(s.webhooks) > 0 }

// fill returns a document with the secrets that the one before has.
func (s silence) fill(d, before policy.Document) policy.Document {
	d.BasicAuth, d.Webhooks = slices.Clone(d.BasicAuth), slices.Clone(d.Webhooks)
	for i := range d.BasicAuth {
		u := &d.BasicAuth[i]
		was := slices.IndexFunc(before.BasicAuth, func(old policy.User) bool { return old.Name == u.Name })
		if was >= 0 && slices.Contains(s.users, u.Name) {
			u.Hash = before.BasicAuth[was].Hash
		}
	}
	for i := range d.Webhooks {
		w := &d.Webhooks[i]
		was := slices.IndexFunc(before.Webhooks, w.SameAs)
		if was >= 0 && slices.ContainsFunc(s.webhooks, w.SameAs) {
			w.Secrets = before.Webhooks[was].Secrets
		}
	}
	return d
}

// isSecretMissing reports whether a document has a user without a password, or a
// webhook without secrets.
func isSecretMissing(err error) bool {
	var field *policy.FieldError
	return errors.As(err, &field) && (strings.HasSuffix(field.Field, ".password") || strings.HasSuffix(field.Field, "].secrets"))
}
