package definition

import (
	"fmt"

	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
)

// DeclareError is a mistake in one of several specs that are declared together.
type DeclareError struct {
	Index int
	Err   *refusal.Error
	// Taken is set if the only mistake is that a tunnel that is not declared already has the name.
	Taken bool
}

func (e *DeclareError) Error() string { return fmt.Sprintf("tunnel %d: %v", e.Index, e.Err) }
func (e *DeclareError) Unwrap() error { return e.Err }

// Declared returns specs in the form that they will have at the given agent instance. Specs are
// identified by their names. taken reports which names belong to tunnels that are not declared; a
// nil taken means none. If a spec is wrong, the error is a *DeclareError that says which.
func Declared(specs []Tunnel, instance string, guard origin.Guard, taken func(name string) bool) ([]Tunnel, error) {
	out := make([]Tunnel, 0, len(specs))
	names := make(map[string]bool, len(specs))
	for i, spec := range specs {
		spec, no := spec.withSteadyHashes(instance)
		if no == nil {
			spec, no = spec.Normalize(guard)
		}
		if no == nil && spec.Name == "" {
			no = refusal.Invalid("name", "is missing")
		}
		clash := no == nil && taken != nil && taken(spec.Name)
		if clash {
			no = refusal.Invalid("name", "a tunnel that is not declared is called %q already", spec.Name)
		}
		if no == nil && names[spec.Name] {
			no = refusal.Invalid("name", "another tunnel is called %q already", spec.Name)
		}
		if no != nil {
			return nil, &DeclareError{Index: i, Err: no, Taken: clash}
		}
		names[spec.Name] = true
		out = append(out, spec)
	}
	return out, nil
}
