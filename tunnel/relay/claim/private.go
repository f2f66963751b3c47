package claim

import "adit/tunnel/wire"

// The types of private tunnels in messages between nodes. A node that does not support
// private tunnels does not serve a type that it does not know. For type tcp or udp, it
// would open a public port.
const (
	typePrivate    = "private" // for tcp
	typePrivateUDP = "private_udp"
)

// ForNodes returns a claim in the form in which other nodes are told about it. Its policy
// is left out, as they get it from the store. The rest is limited in size, since a line
// between nodes is.
func ForNodes(c wire.Claim) wire.Claim {
	c.Policy, c.PolicyReplaces, c.PolicyHolds, c.PolicyOf = nil, false, false, ""
	switch {
	case c.Mode != wire.ModePrivate:
	case c.Type == wire.TypeUDP:
		c.Type = typePrivateUDP
	default:
		c.Type = typePrivate
	}
	return c
}

// FromNode reverses ForNodes.
func FromNode(c wire.Claim) wire.Claim {
	switch c.Type {
	case typePrivate:
		c.Type = wire.TypeTCP
	case typePrivateUDP:
		c.Type = wire.TypeUDP
	}
	return c
}

// checkPrivate returns an error if parts of a claim do not go with its mode, as far as
// private tunnels are concerned.
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
