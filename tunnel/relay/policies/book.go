package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"adit/tunnel/relay/names"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/table"
)

// Book has people read policies, and set them. The store tells the table of what
// they set.
type Book struct {
	Stored  *store.Policies
	Clients *store.Clients
	Table   *Table
	Names   names.Rules
	// Record writes a change that was made into the audit log, in the name of ctx's
	// actor.
	Record func(ctx context.Context, action, target string, detail any)
	Log    *slog.Logger
}

// Change is a change of one target's policy.
type Change struct {
	Target string
	By     string // id of the client whose change it is; empty: the operator's
	// Expected reports whether what has a tag may be replaced, which is empty where
	// there is no policy. If nil, whatever is there may be.
	Expected func(tag string) bool
	// Against is what else there is against the change; nil: nothing.
	Against table.Against[store.StoredPolicy]
}

// ChangedError is of a change that expected another policy than there is.
type ChangedError struct{ Target string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the policy of %s has changed since it was read, so nothing was changed; read it again", names.Shown(e.Target))
}

// LedError is of a policy for a name that a wildcard leads.
type LedError struct{ Target, Wildcard string }

func (e *LedError) Error() string {
	return fmt.Sprintf("%s is served by the tunnel of %s, whose policy applies to it; change that policy, or give the name its own tunnel first", names.Shown(e.Target), e.Wildcard)
}

// Tag tells a policy from what was there before: by its time, as that is its own,
// also through a backup, while revisions rise with changes of its claim.
func Tag(p store.StoredPolicy) string { return strconv.FormatInt(p.Changed.UnixNano(), 36) }

// Operator is who set a policy that no client did.
const Operator = "operator"

// SetBy is who set a policy: Operator, or a client's name.
func (b *Book) SetBy(p store.StoredPolicy) string {
	if p.By == "" {
		return Operator
	}
	if c, ok := b.Clients.ByID(p.By); ok {
		return c.Name
	}
	return p.By
}

// Read returns what is stored without its secrets.
func Read(p store.StoredPolicy) (policy.Document, error) {
	d, err := policy.ReadStored(p.Document)
	if err = cmp.Or(p.Fault, err); err != nil {
		return policy.Document{}, err
	}
	return d.Redacted(), nil
}

// Set stores a policy. A user that comes without a password, and a webhook without
// secrets, keep those that the policy before had, since they are not shown. Its
// errors are *policy.FieldError, *UnknownProviderError, *LedError, *ChangedError,
// those of c.Against, and the store's.
func (b *Book) Set(ctx context.Context, c Change, document []byte) error {
	if all := b.Names.Leader(claims.DomainOf(c.Target)); all != "" {
		return &LedError{c.Target, all}
	}
	document, silent, err := b.withSecrets(c.Target, document)
	if err != nil {
		return err
	}
	d, err := policy.Parse(document)
	if err == nil && c.By != "" {
		err = d.Affordable()
	}
	if err == nil {
		err = b.Table.Known(d.SignIn)
	}
	if err != nil {
		return err
	}
	err = b.Stored.Change(ctx, c.Target, c.By, func(old store.StoredPolicy, _ bool) ([]byte, error) {
		next := d
		if before, err := policy.ReadStored(old.Document); silent.any() && err == nil { // somebody may have set one meanwhile
			next = silent.fill(d, before)
		}
		return next.Stored()
	}, c.against)
	if err != nil {
		return err
	}
	b.Log.Info("policy set", "target", names.Shown(c.Target))
	b.Record(ctx, "policy.set", names.Shown(c.Target), d.Noted())
	return nil
}

// withSecrets is a document with the secrets of the policy in force where it comes
// without, and what of it does.
func (b *Book) withSecrets(target string, document []byte) ([]byte, silence, error) {
	var d policy.Document
	old := b.Table.Get(target)
	if old == nil || json.Unmarshal(document, &d) != nil {
		return document, silence{}, nil
	}
	silent := silenceOf(d)
	if !silent.any() {
		return document, silence{}, nil
	}
	// Unknown fields are found before they would be lost here.
	if _, err := policy.Parse(document); !isSecretMissing(err) {
		return document, silence{}, nil
	}
	document, err := json.Marshal(silent.fill(d, old.Document()))
	return document, silent, err
}

// Delete deletes a policy. Its errors are bucket.ErrNotFound, *ChangedError, those of
// c.Against, and the store's.
func (b *Book) Delete(ctx context.Context, c Change) error {
	if err := b.Stored.DeleteUnless(ctx, c.Target, c.against); err != nil {
		return err
	}
	b.Log.Info("policy deleted", "target", names.Shown(c.Target))
	b.Record(ctx, "policy.delete", names.Shown(c.Target), nil)
	return nil
}

// against is all that there is against the change.
func (c Change) against(v store.StoredPolicy, exists bool) error {
	if c.Against != nil {
		if err := c.Against(v, exists); err != nil {
			return err
		}
	}
	tag := ""
	if exists {
		tag = Tag(v)
	}
	if c.Expected != nil && !c.Expected(tag) {
		return &ChangedError{c.Target}
	}
	return nil
}
