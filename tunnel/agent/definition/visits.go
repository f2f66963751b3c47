package definition

import (
	"slices"

	"adit/internal/loopback"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// maxVisits bounds the declared visits.
const maxVisits = 100

// Visit is an address on this machine whose connections are led to another
// client's private tunnel. Only a loopback one may be: no other machine is to use this
// agent's right to visit.
type Visit struct {
	Tunnel string `json:"tunnel"` // CLIENT/NAME
	Listen string `json:"listen"` // a port, or a loopback address with one
}

// CheckVisits returns specs in their usual form, or a *DeclareError that says which is
// wrong.
func CheckVisits(specs []Visit) ([]Visit, error) {
	out := make([]Visit, 0, len(specs))
	for i, spec := range specs {
		spec, no := normalVisit(spec)
		switch {
		case no != nil:
		case i == maxVisits:
			no = refusal.Invalid("", "there must be at most %d visits", maxVisits)
		case slices.ContainsFunc(out, func(o Visit) bool { return o.Listen == spec.Listen }):
			no = refusal.Invalid("listen", "another visit listens on %s already", spec.Listen)
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
	addr, err := loopback.Parse(spec.Listen)
	if err != nil {
		return spec, refusal.Invalid("listen", "%v", err)
	}
	return Visit{Tunnel: client + "/" + name, Listen: addr.String()}, nil
}
