package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/seal"
	"adit/tunnel/relay/store/table"
)

// Operators holds what the console keeps: accounts, logins and API tokens, as JSON under keys
// that the console chooses. An account contains the secret of its second factor, so it is
// sealed if the relay has a secret. A sealed account is stored as a JSON string, which the
// console's own values never are.
type Operators struct {
	table *table.Table[json.RawMessage]
	seal  *seal.Seal // nil: accounts are stored unsealed
}

// accountPrefix begins the keys of accounts.
const accountPrefix = "account."

// close seals an account if the relay has a secret, and open undoes that. A value that cannot
// be opened is left as it is; the console does not accept it as an account.
func (o *Operators) close(key string, v []byte) []byte {
	if o.seal == nil || !strings.HasPrefix(key, accountPrefix) || isString(v) {
		return v
	}
	text, _ := json.Marshal(o.seal.Close("operator/"+key, v)) // a byte slice always marshals
	return text
}

func (o *Operators) open(key string, v []byte) []byte {
	var sealed []byte
	if !isString(v) || json.Unmarshal(v, &sealed) != nil || !seal.Is(sealed) {
		return v
	}
	if plain, err := o.seal.Open("operator/"+key, sealed); err == nil {
		return plain
	}
	return v
}

func isString(v []byte) bool { return len(v) > 0 && v[0] == '"' }

// sealAll seals the accounts that were stored before the relay had a secret.
func (o *Operators) sealAll(ctx context.Context) error {
	if o.seal == nil {
		return nil
	}
	for key := range o.List(accountPrefix) {
		v, revision, ok := o.table.Get(key)
		if !ok || isString(v) {
			continue
		}
		if err := o.table.Update(ctx, key, o.close(key, v), revision); err != nil && !errors.Is(err, bucket.ErrConflict) {
			return fmt.Errorf("seal %s: %w", key, err)
		}
	}
	return nil
}

// Get returns a value and its revision.
func (o *Operators) Get(key string) (value []byte, revision uint64, ok bool) {
	value, revision, ok = o.table.Get(key)
	return o.open(key, value), revision, ok
}

// List returns all values whose keys begin with prefix.
func (o *Operators) List(prefix string) map[string][]byte {
	found := map[string][]byte{}
	o.table.Each(func(key string, v json.RawMessage) bool {
		if strings.HasPrefix(key, prefix) {
			found[key] = o.open(key, v)
		}
		return true
	})
	return found
}

// Put stores a value in place of the given revision; 0 means none. It reports false if
// something else is there.
func (o *Operators) Put(ctx context.Context, key string, value []byte, revision uint64) (saved bool, err error) {
	value = o.close(key, value)
	for seen := (bucket.Contest{}); ; {
		if err := seen.Next(ctx, revision); err != nil {
			return false, err
		}
		if revision == 0 {
			err = o.table.Create(ctx, key, value)
		} else {
			err = o.table.Update(ctx, key, value, revision)
		}
		if !errors.Is(err, bucket.ErrExists) && !errors.Is(err, bucket.ErrConflict) {
			return err == nil, err
		}
		if there, err := o.table.Refresh(ctx, key); err != nil || there == (revision == 0) {
			return false, err
		}
		if _, now, _ := o.table.Get(key); now != revision {
			return false, nil
		}
	}
}

// Remove removes the value with a given revision. It reports false if something else is there.
// If nothing is there, it counts as removed.
func (o *Operators) Remove(ctx context.Context, key string, revision uint64) (removed bool, err error) {
	for seen := (bucket.Contest{}); ; {
		if err := seen.Next(ctx, revision); err != nil {
			return false, err
		}
		if err := o.table.Remove(ctx, key, revision); !errors.Is(err, bucket.ErrConflict) {
			return err == nil, err
		}
		if there, err := o.table.Refresh(ctx, key); err != nil || !there {
			return err == nil, err
		}
		if _, now, _ := o.table.Get(key); now != revision {
			return false, nil
		}
	}
}

// passing reports whether a value is short-lived: a login, or the note of an administrator
// about to be demoted, which refers to revisions of this bucket.
func passing(key string) bool { return strings.HasPrefix(key, "login.") || key == "leaving" }

// lasting returns what belongs in a backup.
func (o *Operators) lasting() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for key, v := range o.List("") {
		all[key] = v
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return passing(key) })
	return all
}
