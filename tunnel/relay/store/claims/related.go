package claims

import (
	"context"
	"strings"

	"adit/internal/wildcard"
)

// Related returns a name of another client that is related to name: one that name is a
// subdomain of, if it is below base, or one that is a subdomain of name. Wildcards are above
// all names that they cover. If the client already has name, there is none.
func (c *Registry) Related(name, base, clientID string) (other string, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.owner[TargetDomain(name)].client == clientID {
		return "", false
	}
	c.related(name, base, clientID, func(found string) bool { other, ok = found, true; return false })
	return other, ok
}

// Earlier is Related for a name that the client has just been given. It returns a related name
// that was given out earlier, perhaps by another node without the knowledge of this one. Of
// two names that were given out at the same time, only the later one finds the other.
func (c *Registry) Earlier(ctx context.Context, name, base, clientID string) (other string, ok bool, err error) {
	_, own, there := c.table.Get(TargetDomain(name))
	if !there {
		return "", false, nil // already lost
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

// related calls yield with the names of other clients that are above name and below base, or
// below name, until yield returns false. The caller holds c.mu.
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
