package agent

import (
	"slices"
	"strings"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

func (s TunnelSpec) private() bool { return s.Mode == wire.ModePrivate }

// numbered reports whether a tunnel has a public port of its own, and no name.
func (s TunnelSpec) numbered() bool {
	return (s.Type == wire.TypeTCP || s.Type == wire.TypeUDP) && !s.private()
}

// movedFrom reports whether another public address is asked for than before.
func (s TunnelSpec) movedFrom(before TunnelSpec) bool {
	return s.Type != before.Type || s.private() != before.private() || s.Domain != before.Domain || s.RemotePort != before.RemotePort
}

// checkPrivate checks what of a spec depends on whether its mode is private, and
// returns it with those fields in their usual form.
func checkPrivate(spec TunnelSpec) (TunnelSpec, *refusal.Error) {
	if len(spec.Visitors) == 0 {
		spec.Visitors = nil
	}
	if spec.Mode != wire.ModePrivate {
		if spec.Visitors != nil {
			return spec, refusal.Invalid("visitors", "are for tunnels of mode private only")
		}
		return spec, nil
	}
	switch {
	case spec.Type != wire.TypeTCP:
		return spec, refusal.Invalid("type", "must be tcp for mode private; that carries http as well")
	case spec.RemotePort != 0:
		return spec, refusal.Invalid("remote_port", "is not for mode private, which has no public port")
	}
	spec.Domain = strings.ToLower(strings.TrimSpace(spec.Domain))
	if spec.Domain != "" && !wire.ValidPrivateName(spec.Domain) {
		return spec, refusal.Invalid("domain", "%q must be one label in mode private, as ssh", refusal.Clip(spec.Domain))
	}
	visitors := make([]string, len(spec.Visitors))
	for i, v := range spec.Visitors {
		visitors[i] = strings.ToLower(strings.TrimSpace(v))
	}
	spec.Visitors = slices.Clip(visitors)
	if len(visitors) == 0 {
		spec.Visitors = nil
	}
	if err := wire.CheckVisitors(visitors); err != nil {
		return spec, refusal.Invalid("visitors", "%v", err)
	}
	return spec, nil
}
