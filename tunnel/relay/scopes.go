package relay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"adit/internal/wildcard"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// scope returns what the session's client may have now.
func (s *session) scope() scope.Scope {
	c, _ := s.relay.store.Clients.Get(s.client.Name)
	if c.ID != s.client.ID {
		return scope.Scope{Tunnels: -1} // the client no longer exists, so it may have nothing
	}
	return c.Scope
}

// within returns an error if a claim is outside a scope, before its name or port is
// looked up. Until placed is called, the tunnel counts as running.
func (s *session) within(scope scope.Scope, key string, c wire.Claim) (placed func(), err error) {
	if !scope.AllowsType(c.Type) {
		return nil, wire.Forbidden("type", "this client may have tunnels of the types %s; choose one of them, or ask the relay's operator", strings.Join(scope.Types, ", "))
	}
	if scope.Tunnels == 0 {
		return func() {}, nil
	}
	placed, n := s.relay.coming.enter(s, key, scope.Tunnels)
	if placed == nil {
		return nil, &wire.Problem{Code: wire.CodeLimit, Message: fmt.Sprintf("this client has reached its limit of tunnels, %d of %d; stop one first, or ask the relay's operator for more", n, max(scope.Tunnels, 0))}
	}
	return placed, nil
}

// coming holds the tunnels that are about to run, for clients with a limit on running
// tunnels. They count towards the limit; otherwise agents that connect together would
// exceed it.
type coming struct {
	mu sync.Mutex
	of map[string]map[tunnelID]int // by client; in how many sessions
}

// enter records a tunnel of a session, unless its client already has most or more other
// tunnels. It returns how many others there are. leave is nil if the tunnel was not
// recorded.
func (v *coming) enter(s *session, key string, most int) (leave func(), others int) {
	client, id := s.client.ID, tunnelID{s.hello.Instance, key}
	v.mu.Lock()
	defer v.mu.Unlock()
	found := s.relay.tunnelsOf(client)
	for other := range v.of[client] {
		found[other] = true
	}
	delete(found, id)
	if len(found) >= most {
		return nil, len(found)
	}
	if v.of == nil {
		v.of = make(map[string]map[tunnelID]int)
	}
	if v.of[client] == nil {
		v.of[client] = make(map[tunnelID]int)
	}
	v.of[client][id]++
	return func() { v.leave(client, id) }, len(found)
}

func (v *coming) leave(client string, id tunnelID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of[client][id]--; v.of[client][id] == 0 {
		delete(v.of[client], id)
	}
	if len(v.of[client]) == 0 {
		delete(v.of, client)
	}
}

// tunnelID identifies a tunnel of a client. A tunnel may run over several sessions.
type tunnelID struct{ instance, key string }

// tunnelsOf returns a client's running tunnels on all nodes.
func (r *Relay) tunnelsOf(clientID string) map[tunnelID]bool {
	found := map[tunnelID]bool{}
	r.far.Each(func(of roster.Agent, tunnels iter.Seq2[string, routing.Face]) {
		if of.Client == clientID {
			for key := range tunnels {
				found[tunnelID{of.Instance, key}] = true
			}
		}
	})
	for _, s := range r.roster.OfClient(clientID) {
		s.mu.Lock()
		for k := range s.tunnels {
			found[tunnelID{s.hello.Instance, k}] = true
		}
		s.mu.Unlock()
	}
	return found
}

// mayTake is like mayHave, for a name that the client has, or is about to have until
// leave is called.
func (s *session) mayTake(ctx context.Context, scope scope.Scope, name string) (leave func(), err error) {
	r := s.relay
	has, _ := r.store.Claims.Get(claims.TargetDomain(name))
	own := has.ClientID == s.client.ID
	if !own && len(scope.Domains) == 0 && r.names.IsConsole(name) { // otherwise the operator has allowed it
		return nil, names.OwnError(name)
	}
	if own || !r.names.Under(name) {
		return func() {}, s.mayHave(ctx, scope, name)
	}
	leave, other := r.taking.enter(name, s.client.ID)
	if err = s.mayHave(ctx, scope, name); err == nil && other != "" && len(scope.Domains) == 0 {
		err = takenBeside(other)
	}
	if err != nil {
		leave()
	}
	return leave, err
}

// mayHave returns an error if a client may not have a full name, or all names of a
// wildcard. A name outside the relay's domain that is not yet proved is looked up in the
// DNS.
func (s *session) mayHave(ctx context.Context, scope scope.Scope, name string) error {
	r := s.relay
	if !scope.AllowsDomain(name, r.cfg.Domain) {
		return wire.Forbidden("domain", "this client may have the names %s, not %s; choose one of them, or ask the relay's operator", strings.Join(scope.Domains, ", "), name)
	}
	if r.names.Under(name) {
		return r.apart(s.client.ID, scope, name)
	}
	if !r.cfg.AnyDomain && len(scope.Domains) == 0 {
		return wire.Forbidden("domain", "%s is not under the relay's domain %s; choose a name that is, or ask the relay's operator", name, r.cfg.Domain)
	}
	return r.prove(ctx, s.client, scope, name)
}

// apart returns an error if a client may not have a name under the relay's domain because
// another client has a name above or under it. Browsers share cookies between such names
// (RFC 6265, section 5.1.3). Names that the operator has listed for the client are always
// allowed.
func (r *Relay) apart(clientID string, scope scope.Scope, name string) error {
	if len(scope.Domains) > 0 {
		return nil
	}
	switch other, ok := r.store.Claims.Related(name, r.cfg.Domain, clientID); {
	case ok && other == name:
		return &wire.Problem{Code: wire.CodeTaken, Field: "domain", Message: "the name " + name + " is taken by another client; choose another"}
	case ok:
		return takenBeside(other)
	}
	return nil
}

// stillApart repeats the check of apart for a name that the client was just given:
// another node may have given away one above or under it at the same moment.
func (s *session) stillApart(ctx context.Context, scope scope.Scope, face routing.Face) error {
	r := s.relay
	if r.mesh == nil || face.Domain == "" || face.Slot == claims.SlotPrivate || len(scope.Domains) > 0 || !r.names.Under(face.Domain) {
		return nil
	}
	other, ok, err := r.store.Claims.Earlier(ctx, face.Domain, r.cfg.Domain, s.client.ID)
	if ok {
		return takenBeside(other)
	}
	return err
}

// takenBeside refuses a name because another client has one above or under it.
func takenBeside(other string) error {
	return &wire.Problem{Code: wire.CodeTaken, Field: "domain", Message: "the name " + other + " is taken by another client, and so are the names above and below it; choose another"}
}

// taking holds the names under the relay's domain that clients are about to have. A name
// that is not stored yet is invisible to anyone who checks which names are taken.
type taking struct {
	mu sync.Mutex
	of map[string]map[string]int // for each name, its clients, and how many of each client's tunnels
}

// enter records that a client is about to have a name, until leave is called. other is a
// name above or under it that another client is about to have, or empty.
func (v *taking) enter(name, clientID string) (leave func(), other string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for of, clients := range v.of {
		_, own := clients[clientID]
		if related(name, of) && (!own || len(clients) > 1) {
			other = of
		}
	}
	if v.of == nil {
		v.of = make(map[string]map[string]int)
	}
	if v.of[name] == nil {
		v.of[name] = make(map[string]int)
	}
	v.of[name][clientID]++
	return func() { v.leave(name, clientID) }, other
}

func (v *taking) leave(name, clientID string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	clients := v.of[name]
	if clients[clientID]--; clients[clientID] == 0 {
		delete(clients, clientID)
	}
	if len(clients) == 0 {
		delete(v.of, name)
	}
}

// related reports whether one of two names is under the other. A wildcard is above all
// the names that it covers.
func related(a, b string) bool {
	underA, _ := wildcard.Base(a)
	underB, _ := wildcard.Base(b)
	return a != b && (strings.HasSuffix(a, "."+underB) || strings.HasSuffix(b, "."+underA))
}

// mayHavePort returns an error if a client may not have a port.
func mayHavePort(scope scope.Scope, port int) error {
	if !scope.AllowsPort(port) {
		return wire.Forbidden("remote_port", "this client may have the ports %s, not %d; choose one of them, or ask the relay's operator", strings.Join(scope.Ports, ", "), port)
	}
	return nil
}

// fits returns an error if a running tunnel is outside a scope.
func (r *Relay) fits(scope scope.Scope, f routing.Face) error {
	switch {
	case !scope.AllowsType(f.Type):
		return wire.Forbidden("type", "the relay's operator has taken the type %s from this client; choose another, or ask the operator", f.Type)
	case f.Slot == claims.SlotPrivate: // it has neither a port nor a domain
	case f.Slot == claims.SlotPort && !scope.AllowsPort(f.Port):
		return wire.Forbidden("remote_port", "the relay's operator has taken the port %d from this client; choose another, or ask the operator", f.Port)
	case f.Slot != claims.SlotPort && !scope.AllowsDomain(f.Domain, r.cfg.Domain):
		return wire.Forbidden("domain", "the relay's operator has taken the name %s from this client; choose another, or ask the operator", f.Domain)
	case f.Slot != claims.SlotPort && !r.names.Under(f.Domain) && !r.cfg.AnyDomain && len(scope.Domains) == 0:
		return wire.Forbidden("domain", "the relay's operator has taken the name %s from this client; choose another, or ask the operator", f.Domain)
	}
	return nil
}

// givenName finds a free name that the scope allows for a tunnel that asks for none. try
// serves a name, or returns why it cannot.
func (s *session) givenName(scope scope.Scope, try func(name string) (*tunnel, error)) (*tunnel, error) {
	under, exact := scope.GivenDomain(s.relay.cfg.Domain)
	for _, name := range exact {
		t, err := try(name)
		var p *wire.Problem
		if err == nil || !errors.As(err, &p) || p.Code != wire.CodeTaken {
			return t, err
		}
	}
	if under == "" {
		return nil, wire.Forbidden("domain", "name a domain: this client may have the names %s", strings.Join(scope.Domains, ", "))
	}
	for range givenTries {
		name := givenLabel() + "." + under
		if _, taken := s.relay.store.Claims.Get(claims.TargetDomain(name)); !taken {
			return try(name)
		}
	}
	return nil, &wire.Problem{Code: wire.CodeUnavailable, Message: "no free name was found"}
}
