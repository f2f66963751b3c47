package policies

import (
	"errors"
	"slices"
	"strings"

	"adit/tunnel/relay/policy"
)

// silence lists the parts of a document that came without their secrets and keep the
// existing ones.
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

// fill returns a copy of d with the missing secrets taken from before.
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

// isSecretMissing reports whether err says that a user has no password, or a webhook no
// secrets.
func isSecretMissing(err error) bool {
	var field *policy.FieldError
	return errors.As(err, &field) && (strings.HasSuffix(field.Field, ".password") || strings.HasSuffix(field.Field, "].secrets"))
}
