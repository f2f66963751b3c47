package console

import (
	"context"
	"encoding/json"
	"time"
)

// leavingKey holds who is about to stop being an administrator. Two administrators that
// demote each other, perhaps at two nodes, change two different accounts, so nothing
// would keep both changes from succeeding. So each change is first announced here, in
// place of the revision that was read: one of the two comes first, and the other sees it.
const leavingKey = "leaving"

const (
	departureTime = 10 * time.Second // the longest a change takes; after that its node has died, or its clock is wrong
	departureKept = 24 * time.Hour   // for accounts that no longer exist; no node is that far behind
)

// departure announces what may become of an account at one revision. Once the account has
// a later revision, it is over: the change has been made, or it has failed.
type departure struct {
	Revision uint64    `json:"revision"`
	At       time.Time `json:"at"`
}

// administers reports whether an account may do everything.
func (a record) administers() bool { return a.Role == RoleAdministrator && !a.Disabled }

// oneLess makes a change after which the account may no longer be an administrator,
// unless it is the last one. write stores the change in place of the revision. If it
// reports false because that revision is gone, it is called again.
func (c *Console) oneLess(ctx context.Context, name string, write func(a record, rev uint64) (bool, error)) error {
	c.leaving.Lock() // one at a time per node
	defer c.leaving.Unlock()
	for range 5 {
		a, rev, ok := c.account(name)
		if !ok {
			return noAccount(name)
		}
		announced := true
		var err error
		if a.administers() {
			announced, err = c.announce(ctx, name, rev)
		}
		if err == nil && announced {
			announced, err = write(a, rev)
		}
		if err != nil || announced {
			return err
		}
	}
	return errBusy
}

// announce records that the account's revision may be its last as an administrator. It
// reports false if something has changed in the meantime.
func (c *Console) announce(ctx context.Context, name string, rev uint64) (bool, error) {
	// This is read before the accounts, so that any later announcement is noticed when
	// this one is written.
	value, at, _ := c.cfg.Keeper.Get(leavingKey)
	going := map[string]departure{}
	if value != nil && json.Unmarshal(value, &going) != nil {
		going = map[string]departure{}
	}
	now := time.Now()
	if going[name].Revision > rev {
		return false, nil // another node knows a later revision
	}
	stay, err := c.another(ctx, name, going, now)
	if err != nil || !stay {
		return false, err
	}
	for other, d := range going {
		if _, _, ok := c.account(other); !ok && now.Sub(d.At).Abs() > departureKept {
			delete(going, other)
		}
	}
	going[name] = departure{rev, now.UTC()}
	return c.put(ctx, leavingKey, going, at)
}

// another reports whether an administrator other than name stays. If a departure was
// announced long ago, it voids the announcement by giving the account a new revision.
// Then it reports false, and the caller tries again.
func (c *Console) another(ctx context.Context, name string, going map[string]departure, now time.Time) (bool, error) {
	var fresh bool
	var stuck []string
	for _, other := range c.accounts() {
		a, rev, ok := c.account(other.Name)
		if !ok || a.Name == name || !a.administers() {
			continue
		}
		d, leaves := going[a.Name]
		switch {
		case !leaves || rev > d.Revision:
			return true, nil
		case now.Sub(d.At).Abs() < departureTime:
			fresh = true
		default:
			stuck = append(stuck, a.Name)
		}
	}
	switch {
	case len(stuck) > 0:
		a, rev, ok := c.account(stuck[0])
		if !ok {
			return false, nil
		}
		_, err := c.put(ctx, accountPrefix+a.Name, a, rev)
		return false, err
	case fresh:
		return false, errBusy
	}
	return false, invalid("name", "%s is the last administrator; make another one first", name)
}
