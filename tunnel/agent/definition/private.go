package definition

import (
	"slices"
	"strings"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// checkPrivate checks those fields of a spec that depend on whether its mode is private, and
// returns it with them in canonical form.
func checkPrivate(spec Tunnel) (Tunnel, *refusal.Error) {
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
	case spec.Type != wire.TypeTCP && spec.Type != wire.TypeUDP:
		return spec, refusal.Invalid("type", "must be tcp or udp for mode private; tcp carries http as well")
	case spec.RemotePort != 0:
		return spec, refusal.Invalid("remote_port", "is not for mode private, which has no public port")
	}
	spec.Domain = strings.ToLower(strings.TrimSpace(spec.Domain))
	if spec.Domain != "" && !wire.ValidPrivateName(spec.Domain) {
		return spec, refusal.Invalid("domain", "%q must be one label in mode private, such as ssh", refusal.Clip(spec.Domain))
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
