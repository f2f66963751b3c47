package state

import "adit/tunnel/agent/definition"

// Grant is what the relay gave a tunnel last.
type Grant struct {
	Domain     string `json:"domain,omitempty"`
	RemotePort int    `json:"remote_port,omitempty"`
	PublicURL  string `json:"public_url,omitempty"`
	// Chosen is set if the tunnel asked for this name or port, and not for any.
	Chosen bool `json:"chosen,omitempty"`
	// GivenUp is set if the tunnel is to have another name or port now. The relay
	// has this one for it until it gives the other.
	GivenUp bool `json:"given_up,omitempty"`
}

// GaveUp is g for a tunnel that is to have another name or port.
func (g Grant) GaveUp() Grant {
	if g.Domain == "" && g.RemotePort == 0 {
		return Grant{}
	}
	g.GivenUp, g.PublicURL = true, ""
	return g
}

// Of is g for a tunnel that is to be as want says, which may be other than when it
// was given.
func (g Grant) Of(want definition.Tunnel) Grant {
	numbered := want.Numbered()
	switch {
	case g.Domain != "" && (numbered || want.Domain != "" && !definition.SameName(want.Domain, g.Domain)),
		g.RemotePort != 0 && (!numbered || want.RemotePort != 0 && want.RemotePort != g.RemotePort),
		g.Chosen && want.Domain == "" && want.RemotePort == 0:
		return g.GaveUp()
	}
	return g
}
