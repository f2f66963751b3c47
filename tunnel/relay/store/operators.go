package store

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
)

// Operators are what the console keeps: accounts, logins and API tokens, as JSON
// of its own making under keys of its own.
type Operators struct{ table *table[json.RawMessage] }

// Get returns a value and its revision.
func (o *Operators) Get(key string) (value []byte, revision uint64, ok bool) {
	return o.table.get(key)
}

// List returns all values whose keys begin so.
func (o *Operators) List(prefix string) map[string][]byte {
	found := map[string][]byte{}
	o.table.each(func(key string, v json.RawMessage) bool {
		if strings.HasPrefix(key, prefix) {
			found[key] = v
		}
		return true
	})
	return found
}

// Put stores a value in place of a revision, 0 for none. It reports false if
// something else is there.
func (o *Operators) Put(ctx context.Context, key string, value []byte, revision uint64) (saved bool, err error) {
	if revision == 0 {
		err = o.table.create(ctx, key, value)
	} else {
		err = o.table.update(ctx, key, value, revision)
	}
	if errors.Is(err, ErrExists) || errors.Is(err, ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// Remove removes a revision; one that is not there any more is no error.
func (o *Operators) Remove(ctx context.Context, key string, revision uint64) error {
	if err := o.table.remove(ctx, key, revision); !errors.Is(err, ErrConflict) {
		return err
	}
	return nil
}

// lasting is what belongs into a backup: logins do not.
func (o *Operators) lasting() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for key, v := range o.List("") {
		all[key] = v
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return strings.HasPrefix(key, "login.") })
	return all
}
