package state

import "adit/tunnel/agent/definition"

// Grant is what the relay gave a tunnel most recently.
type Grant struct {
	Domain     string `json:"domain,omitempty"`
	RemotePort int    `json:"remote_port,omitempty"`
	PublicURL  string `json:"public_url,omitempty"`
	// Chosen is set if the tunnel asked for this particular name or port.
	Chosen bool `json:"chosen,omitempty"`
	// GivenUp is set if the tunnel is now to get a different name or port. The relay keeps this one
	// for it until it grants the other.
	GivenUp bool `json:"given_up,omitempty"`
}

// GaveUp returns g for a tunnel that is to get a different name or port.
func (g Grant) GaveUp() Grant {
	if g.Domain == "" && g.RemotePort == 0 {
		return Grant{}
	}
	g.GivenUp, g.PublicURL = true, ""
	return g
}

// Of returns g for a tunnel with the definition want, which may have changed since the grant.
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
