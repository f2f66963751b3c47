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

// Book lets people read and set policies. The store notifies the table of what they set.
type Book struct {
	Stored  *store.Policies
	Clients *store.Clients
	Table   *Table
	Names   names.Rules
	// Record writes a completed change into the audit log, in the name of ctx's actor.
	Record func(ctx context.Context, action, target string, detail any)
	Log    *slog.Logger
}

// Change describes a change to the policy of one target.
type Change struct {
	Target string
	By     string // id of the client that makes the change; empty: the operator
	// Expected reports whether the policy with a tag may be replaced. The tag is empty if
	// there is no policy. If Expected is nil, any policy may be replaced.
	Expected func(tag string) bool
	// Against returns any other objection to the change. It may be nil.
	Against table.Against[store.StoredPolicy]
}

// ChangedError is returned for a change that expected a different policy.
type ChangedError struct{ Target string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the policy of %s has changed since it was read, so nothing was changed; read it again", names.Shown(e.Target))
}

// LedError is returned for the policy of a name that is covered by a wildcard.
type LedError struct{ Target, Wildcard string }

func (e *LedError) Error() string {
	return fmt.Sprintf("%s is served by the tunnel of %s, whose policy applies to it; change that policy, or give the name its own tunnel first", names.Shown(e.Target), e.Wildcard)
}

// Tag identifies a version of a policy by the time it was set. That belongs to the policy
// alone and survives a backup, while the revision rises with every change of its claim.
func Tag(p store.StoredPolicy) string { return strconv.FormatInt(p.Changed.UnixNano(), 36) }

// Operator stands for the operator in SetBy.
const Operator = "operator"

// SetBy returns who set a policy: Operator, or a client's name.
func (b *Book) SetBy(p store.StoredPolicy) string {
	if p.By == "" {
		return Operator
	}
	if c, ok := b.Clients.ByID(p.By); ok {
		return c.Name
	}
	return p.By
}

// Read returns a stored policy without its secrets.
func Read(p store.StoredPolicy) (policy.Document, error) {
	d, err := policy.ReadStored(p.Document)
	if err = cmp.Or(p.Fault, err); err != nil {
		return policy.Document{}, err
	}
	return d.Redacted(), nil
}

// Set stores a policy. A user without a password and a webhook without secrets keep the
// secrets of the previous policy, since these are never shown. Its errors are
// *policy.FieldError, *UnknownProviderError, *LedError, *ChangedError, those of
// c.Against, and the store's.
func (b *Book) Set(ctx context.Context, c Change, document []byte) error {
	if all := b.Names.Leader(claims.DomainOf(c.Target)); all != "" {
		return &LedError{c.Target, all}
	}
	document, silent, err := b.withSecrets(c, document)
	if err != nil {
		return err
	}
	d, err := policy.ParseOf(c.By, document)
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
		if before, err := policy.ReadStored(old.Document); silent.any() && err == nil { // somebody may have set one in the meantime
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

// withSecrets fills in missing secrets from the policy in force, and returns what was
// missing.
func (b *Book) withSecrets(c Change, document []byte) ([]byte, silence, error) {
	var d policy.Document
	old := b.Table.Get(c.Target)
	if old == nil || json.Unmarshal(document, &d) != nil {
		return document, silence{}, nil
	}
	silent := silenceOf(d)
	if !silent.any() {
		return document, silence{}, nil
	}
	// Unknown fields must be found before they get lost here.
	if _, err := policy.ParseOf(c.By, document); !isSecretMissing(err) {
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

// against returns any objection to the change.
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
