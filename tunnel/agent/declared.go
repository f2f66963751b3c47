package agent

import (
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"
)

// DeclareError is the mistake in one of the specs of Declare.
type DeclareError struct {
	Index int
	Err   *refusal.Error
	// Taken is set if nothing is wrong but that a tunnel which is not declared has
	// the name.
	Taken bool
}

func (e *DeclareError) Error() string { return fmt.Sprintf("tunnel %d: %v", e.Index, e.Err) }
func (e *DeclareError) Unwrap() error { return e.Err }

// declaredID is the id of the declared tunnel of a name: the same after a
// restart, so that its public address is.
func declaredID(name string) string {
	sum := sha256.Sum256([]byte("declared\x00" + name))
	return "tun_" + hex.EncodeToString(sum[:10])
}

// Declare makes the declared tunnels those of specs, each known by its name.
// What did not change is not touched. If one spec is wrong nothing changes, and
// a *DeclareError says which. It waits for a change that is being made.
func (a *Agent) Declare(ctx context.Context, specs []TunnelSpec) error {
	a.control.Lock()
	defer a.control.Unlock()
	order, wanted, err := a.checkDeclared(specs)
	if err != nil {
		return err
	}
	for _, t := range a.undeclared(wanted) {
		if err := a.remove(ctx, t); err != nil {
			return err
		}
	}
	changed, cut, led := a.setDeclared(order, wanted)
	for _, t := range cut {
		t.conns.abort()
	}
	for _, t := range led {
		t.cutStrays()
	}
	if !changed {
		return nil
	}
	a.mu.Lock()
	l := a.cur
	a.mu.Unlock()
	// What is declared is so without being saved: only the addresses that they were
	// given are, and that is tried again.
	if err := a.saveTunnels(); err != nil {
		a.log.Error("tunnels not saved", "error", err)
	}
	l.look()
	a.publish()
	return nil
}

// CheckDeclared says what Declare would say of specs, for an agent that refuses
// what refuse does and has no other tunnels.
func CheckDeclared(specs []TunnelSpec, refuse func(ip netip.Addr, port int) error) error {
	a := &Agent{origins: &origin.Dialer{Guard: origin.Guard{Refuse: refuse}}}
	_, _, err := a.checkDeclared(specs)
	return err
}

// checkDeclared returns specs as they will be, by the tunnels' ids and in order.
func (a *Agent) checkDeclared(specs []TunnelSpec) (order []string, wanted map[string]TunnelSpec, err error) {
	wanted = make(map[string]TunnelSpec, len(specs))
	order = make([]string, 0, len(specs))
	for i, spec := range specs {
		spec, no := a.normalize(spec)
		if no == nil && spec.Name == "" {
			no = refusal.Invalid("name", "is missing")
		}
		taken := no == nil && a.taken(spec.Name)
		if taken {
			no = refusal.Invalid("name", "a tunnel that is not declared is called %q already", spec.Name)
		}
		id := declaredID(spec.Name)
		if _, twice := wanted[id]; twice && no == nil {
			no = refusal.Invalid("name", "another tunnel is called %q already", spec.Name)
		}
		if no != nil {
			return nil, nil, &DeclareError{Index: i, Err: no, Taken: taken}
		}
		wanted[id] = spec
		order = append(order, id)
	}
	return order, wanted, nil
}

// setDeclared makes the declared tunnels those of wanted, and returns whether
// anything changed, the tunnels whose visitors now have another's service, and those
// that lead their paths in another way.
func (a *Agent) setDeclared(order []string, wanted map[string]TunnelSpec) (changed bool, cut, led []*tunnel) {
	now := time.Now().UTC()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, id := range order {
		spec := wanted[id]
		t := a.tunnels[id]
		if t == nil {
			t = newTunnel(id, spec, now.Add(time.Duration(i)))
			t.declared, t.grant = true, a.granted[id].of(spec)
			delete(a.releases, id)
			a.tunnels[id] = t
			changed = true
			continue
		}
		if same(t.spec, spec) {
			continue
		}
		changed = true
		if t.spec.LocalIP != spec.LocalIP || t.spec.LocalPort != spec.LocalPort || t.spec.Type != spec.Type || t.spec.private() != spec.private() {
			cut = append(cut, t)
		} else if !slices.Equal(t.spec.Paths, spec.Paths) {
			led = append(led, t)
		}
		if spec.movedFrom(t.spec) {
			t.grant = t.grant.gaveUp()
		}
		before, alike := t.claim(false), servesAlike(t.spec, spec)
		t.setSpec(spec)
		if !t.claim(false).Equal(before) || t.failure != "" || !alike {
			t.rev++
			t.failure = ""
		}
	}
	return changed, cut, led
}

// taken reports whether a tunnel that is not declared has the name.
func (a *Agent) taken(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tunnels {
		if !t.declared && t.spec.Name == name {
			return true
		}
	}
	return false
}

// undeclared returns the declared tunnels that are not wanted any more.
func (a *Agent) undeclared(wanted map[string]TunnelSpec) []*tunnel {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*tunnel
	for id, t := range a.tunnels {
		if _, keep := wanted[id]; t.declared && !keep {
			out = append(out, t)
			delete(a.granted, id)
		}
	}
	return out
}

// same reports whether two specs, both normalized, are.
func same(a, b TunnelSpec) bool { return reflect.DeepEqual(a, b) }
