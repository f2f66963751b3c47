package definition

import (
	"fmt"

	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
)

// DeclareError is the mistake in one of several specs that are declared together.
type DeclareError struct {
	Index int
	Err   *refusal.Error
	// Taken is set if nothing is wrong but that a tunnel which is not declared has
	// the name.
	Taken bool
}

func (e *DeclareError) Error() string { return fmt.Sprintf("tunnel %d: %v", e.Index, e.Err) }
func (e *DeclareError) Unwrap() error { return e.Err }

// Declared returns specs as they will be at an agent of that instance. Each is known by its
// name, which taken says to be that of a tunnel that is not declared; a nil taken knows
// none. If one is wrong the error is a *DeclareError that says which.
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
