package claim

import "adit/tunnel/wire"

// These are the types of private tunnels as nodes tell each other of them. A node that
// knows no private tunnels does not serve one of a type that it does not know; of type
// tcp or udp it would open a public port for it.
const (
	typePrivate    = "private" // of tcp
	typePrivateUDP = "private_udp"
)

// ForNodes is a claim as other nodes are told of it. Its policy they have from the store.
func ForNodes(c wire.Claim) wire.Claim {
	c.Policy, c.PolicyReplaces, c.PolicyHolds = nil, false, false
	switch {
	case c.Mode != wire.ModePrivate:
	case c.Type == wire.TypeUDP:
		c.Type = typePrivateUDP
	default:
		c.Type = typePrivate
	}
	return c
}

// FromNode is the claim that ForNodes was given.
func FromNode(c wire.Claim) wire.Claim {
	switch c.Type {
	case typePrivate:
		c.Type = wire.TypeTCP
	case typePrivateUDP:
		c.Type = wire.TypeUDP
	}
	return c
}

// checkPrivate says what of a claim does not go with its mode, as far as that is
// private or what only private tunnels have.
func checkPrivate(c *wire.Claim) error {
	if c.Mode != wire.ModePrivate {
		if len(c.Visitors) > 0 {
			return wire.Invalid("visitors", "visitors are for private tunnels; leave them out, or choose the mode private")
		}
		return nil
	}
	switch {
	case c.Type != wire.TypeTCP && c.Type != wire.TypeUDP:
		return wire.Invalid("type", "a private tunnel must be of type udp or tcp, which also carries http; choose one of these")
	case c.RemotePort != 0:
		return wire.Invalid("remote_port", "a private tunnel has no public port; give it none")
	case c.Domain != "" && !wire.ValidPrivateName(c.Domain):
		return wire.Invalid("domain", "a private tunnel's domain is one label, such as ssh: letters, digits and inner hyphens")
	}
	if err := wire.CheckVisitors(c.Visitors); err != nil {
		return wire.Invalid("visitors", "visitors: %v", err)
	}
	return nil
}
