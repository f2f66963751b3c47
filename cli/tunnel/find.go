package tunnel

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"adit/cli/daemon"
	"adit/localapi/client"
)

// named returns the daemon's client, and the id of the tunnel that the user named.
func named(ctx context.Context, find *daemon.Finder, name string) (*client.Client, string, error) {
	c, err := find.Client(ctx)
	if err != nil {
		return nil, "", err
	}
	id, err := Find(ctx, c, name)
	return c, id, err
}

// Find returns the id of the tunnel with this id, or the only one with this name, or, if none has
// it, the one with this domain.
func Find(ctx context.Context, c *client.Client, named string) (string, error) {
	all, err := c.Tunnels(ctx)
	if err != nil {
		return "", err
	}
	var byName, byDomain []string
	for _, t := range all {
		switch {
		case named == "":
		case t.ID == named:
			return t.ID, nil
		case t.Name == named:
			byName = append(byName, t.ID)
		case hasDomain(t, named):
			byDomain = append(byDomain, t.ID)
		}
	}
	found := byName
	if len(found) == 0 {
		found = byDomain
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no tunnel %q; `adit tunnel list` shows all tunnels", named)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d tunnels have the name or domain %q; name one by its id: %s", len(found), named, strings.Join(found, ", "))
}

// ByID returns the daemon's tunnels by id.
func ByID(ctx context.Context, c *client.Client) (map[string]client.Tunnel, error) {
	all, err := c.Tunnels(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string]client.Tunnel, len(all))
	for _, t := range all {
		by[t.ID] = t
	}
	return by, nil
}

// hasDomain reports whether a tunnel has this domain, either as requested or as visitors see it.
func hasDomain(t client.Tunnel, name string) bool {
	if t.Domain == "" {
		return false // the relay's own name is in the URL
	}
	u, err := url.Parse(t.PublicURL)
	return strings.EqualFold(t.Domain, name) || err == nil && strings.EqualFold(u.Hostname(), name)
}
