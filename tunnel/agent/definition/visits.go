package definition

import (
	"slices"

	"adit/internal/loopback"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// maxVisits bounds the declared visits.
const maxVisits = 100

// Visit is an address on this machine whose connections, or packets, are led to another client's
// private tunnel. Only loopback addresses are valid, so that no other machine can use this agent's
// right to visit.
type Visit struct {
	Tunnel string `json:"tunnel"` // CLIENT/NAME
	Type   string `json:"type"`   // the tunnel's: wire.TypeTCP or wire.TypeUDP; empty: tcp
	Listen string `json:"listen"` // a port, or a loopback address with one
}

// CheckVisits returns specs in canonical form, or a *DeclareError that says which is wrong.
func CheckVisits(specs []Visit) ([]Visit, error) {
	out := make([]Visit, 0, len(specs))
	for i, spec := range specs {
		spec, no := normalVisit(spec)
		switch {
		case no != nil:
		case i == maxVisits:
			no = refusal.Invalid("", "there must be at most %d visits", maxVisits)
		case slices.ContainsFunc(out, func(o Visit) bool { return o.Listen == spec.Listen && o.Type == spec.Type }):
			no = refusal.Invalid("listen", "another visit already listens on %s", spec.Listen)
		}
		if no != nil {
			return nil, &DeclareError{Index: i, Err: no}
		}
		out = append(out, spec)
	}
	return out, nil
}

func normalVisit(spec Visit) (Visit, *refusal.Error) {
	client, name, err := wire.ParsePrivate(spec.Tunnel)
	if err != nil {
		return spec, refusal.Invalid("tunnel", "%v", err)
	}
	switch spec.Type {
	case "":
		spec.Type = wire.TypeTCP
	case wire.TypeTCP, wire.TypeUDP:
	default:
		return spec, refusal.Invalid("type", "must be tcp or udp, the same type as the tunnel")
	}
	addr, err := loopback.Parse(spec.Listen)
	if err != nil {
		return spec, refusal.Invalid("listen", "%v", err)
	}
	return Visit{Tunnel: client + "/" + name, Type: spec.Type, Listen: addr.String()}, nil
}
