package claims

import (
	"context"
	"strings"

	"adit/internal/wildcard"
)

// Related returns another client's name that name is under, below base, or that
// is under name. Wildcards are above all names below theirs. Of a name that the
// client has already there is none.
func (c *Registry) Related(name, base, clientID string) (other string, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.owner[TargetDomain(name)].client == clientID {
		return "", false
	}
	c.related(name, base, clientID, func(found string) bool { other, ok = found, true; return false })
	return other, ok
}

// Earlier is Related of a name that the client was just given: it returns one that
// another was given before, at another node perhaps, of which this one may have known
// nothing then. Of two that were given at once, the later one finds the other.
func (c *Registry) Earlier(ctx context.Context, name, base, clientID string) (other string, ok bool, err error) {
	_, own, there := c.table.Get(TargetDomain(name))
	if !there {
		return "", false, nil // it is lost already
	}
	if err := c.table.CatchUp(ctx, own); err != nil {
		return "", false, err
	}
	var all []string
	c.mu.RLock()
	c.related(name, base, clientID, func(found string) bool { all = append(all, found); return true })
	c.mu.RUnlock()
	for _, other := range all {
		if _, rev, there := c.table.Get(TargetDomain(other)); there && rev < own {
			return other, true, nil
		}
	}
	return "", false, nil
}

// related calls yield with the names of other clients that are above name, below base,
// or under it, until it returns false; c.mu is held.
func (c *Registry) related(name, base, clientID string, yield func(other string) bool) {
	for _, above, more := strings.Cut(name, "."); more && above != base; _, above, more = strings.Cut(above, ".") {
		for _, at := range []string{above, "*." + above} {
			if owner, taken := c.owner[TargetDomain(at)]; taken && owner.client != clientID && !yield(at) {
				return
			}
		}
	}
	below, _ := wildcard.Base(name)
	below = "." + below
	for target, owner := range c.owner {
		if owner.client == clientID || !strings.HasSuffix(target, below) {
			continue
		}
		if other := DomainOf(target); other != "" && !yield(other) {
			return
		}
	}
}
