package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strconv"

	"adit/internal/wildcard"
	"adit/tunnel/relay/claim"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

const (
	givenTries = 32 // tries to find a free name or port
	givenChars = "bcdfghjkmnpqrstvwxz23456789"
	givenLen   = 10
)

// claim gives a tunnel its public face. s.claiming must be held.
func (s *session) claim(ctx context.Context, key string, c wire.Claim) (wire.Grant, error) {
	r := s.relay
	if s.gone.Load() {
		return wire.Grant{}, &wire.Problem{Code: wire.CodeUnauthorized, Message: "the session has ended"}
	}
	if r.roster.Closed() {
		return wire.Grant{}, shuttingDown()
	}
	if err := claim.Check(&c); err != nil {
		return wire.Grant{}, err
	}
	s.mu.Lock()
	before, count := s.tunnels[key], len(s.tunnels)
	s.mu.Unlock()
	if before == nil && count >= r.cfg.Limits.TunnelsPerSession {
		return wire.Grant{}, &wire.Problem{Code: wire.CodeLimit, Message: fmt.Sprintf("an agent may have at most %d tunnels here; stop one first, or ask the relay's operator for more", r.cfg.Limits.TunnelsPerSession)}
	}
	held := r.store.Claims.OfTunnel(s.client.ID, s.hello.Instance, key)
	if len(held) == 0 && r.store.Claims.CountOfClient(s.client.ID) >= r.cfg.Limits.ClaimsPerClient {
		return wire.Grant{}, &wire.Problem{Code: wire.CodeLimit, Message: fmt.Sprintf("a client may keep at most %d names and ports here; delete a tunnel first, or ask the relay's operator for more", r.cfg.Limits.ClaimsPerClient)}
	}
	scope := s.scope()
	placed, err := s.within(scope, key, c)
	if err != nil {
		return wire.Grant{}, err
	}
	defer placed()
	t, err := s.place(ctx, placing{key: key, claim: c, scope: scope, held: held, before: before})
	if err != nil {
		return wire.Grant{}, err
	}
	for _, old := range held {
		if old.Target != t.face.Target {
			if err := s.giveBack(ctx, old.Target, key, c.Ephemeral); err != nil {
				r.log.Warn("give back a claim", "target", old.Target, "error", err)
			}
		}
	}
	if before != nil && before.face != t.face {
		r.serving.remove(before.face.Target, s, key)
		r.edge.Detach(before.face, before.backend)
	}
	s.mu.Lock()
	ended := s.tunnels == nil
	if !ended {
		s.tunnels[key] = t
		r.serving.add(t.face.Target, s, key)
	}
	s.mu.Unlock()
	if ended {
		r.edge.Detach(t.face, t.backend)
		return wire.Grant{}, &wire.Problem{Code: wire.CodeUnavailable, Message: "the session has ended"}
	}
	if r.mesh != nil {
		r.mesh.TunnelUp(nodes.Tunnel{
			Session: s.id, Key: key, Number: t.backend.Number, Claim: claim.ForNodes(c),
			Target: t.face.Target, Slot: t.face.Slot, Domain: t.face.Domain, Port: t.face.Port,
			PolicyRevision: r.store.Policies.Revision(t.face.Target), Store: r.store.ID(),
		})
	}
	r.claimChanged(t.face.Target) // it may have changed in the meantime
	r.log.Info("tunnel up", "client", s.client.Name, "key", key, "public_url", t.url)
	return wire.Grant{
		EndpointID: t.face.ID(), Number: t.backend.Number, Domain: t.face.Domain, RemotePort: t.face.Port, PublicURL: t.url,
	}, nil
}

// placing is a tunnel that is about to get a public face.
type placing struct {
	key    string
	claim  wire.Claim
	scope  scope.Scope    // of the client
	held   []claims.Claim // that the tunnel already has
	before *tunnel        // the running tunnel; nil if there is none
}

// place takes a target for the tunnel and opens its face.
func (s *session) place(ctx context.Context, p placing) (*tunnel, error) {
	c := p.claim
	face := routing.Face{Slot: routing.SlotOf(c.Type, c.Mode), Type: c.Type, Mode: c.Mode}
	switch face.Slot {
	case claims.SlotPrivate:
		return s.placePrivate(ctx, p, face)
	case claims.SlotPort:
		return s.placePort(ctx, p, face)
	}
	if c.Domain != "" {
		name, err := s.relay.names.Full(c.Domain)
		if err != nil {
			return nil, err
		}
		leave, err := s.mayTake(ctx, p.scope, name)
		if err != nil {
			return nil, err
		}
		defer leave()
		if err := s.relay.certifiable(c.Type, name); err != nil {
			return nil, err
		}
		face.Domain, face.Target = name, claims.TargetDomain(name)
		return s.open(ctx, p, face)
	}
	for _, old := range p.held { // the name that it had
		if name := claims.DomainOf(old.Target); name != "" && !wildcard.Is(name) && s.mayHave(ctx, p.scope, name) == nil {
			face.Domain, face.Target = name, old.Target
			if t, err := s.open(ctx, p, face); !lost(err) {
				return t, err
			}
		}
	}
	return s.givenName(p.scope, func(name string) (*tunnel, error) {
		face.Domain, face.Target = name, claims.TargetDomain(name)
		return s.open(ctx, p, face)
	})
}

func (s *session) placePort(ctx context.Context, p placing, face routing.Face) (*tunnel, error) {
	c := p.claim
	ports := s.relay.tcp
	if c.Type == wire.TypeUDP {
		ports = s.relay.udp
	}
	if ports.Last == 0 {
		return nil, &wire.Problem{Code: wire.CodeForbidden, Field: "type", Message: "the relay gives no ports to tunnels of type " + c.Type + "; ask its operator for some"}
	}
	if c.RemotePort != 0 {
		if !ports.Has(c.RemotePort) {
			return nil, &wire.Problem{
				Code: wire.CodeForbidden, Field: "remote_port",
				Message: fmt.Sprintf("ports of type %s are %d to %d here; choose one of them, or leave the port out and the relay gives one", c.Type, ports.First, ports.Last),
			}
		}
		if err := mayHavePort(p.scope, c.RemotePort); err != nil {
			return nil, err
		}
		face.Port, face.Target = c.RemotePort, claims.TargetPort(c.Type, c.RemotePort)
		return s.open(ctx, p, face)
	}
	for _, old := range p.held {
		if network, port, ok := claims.PortOf(old.Target); ok && network == c.Type && ports.Has(port) && p.scope.AllowsPort(port) {
			face.Port, face.Target = port, old.Target
			if t, err := s.open(ctx, p, face); !lost(err) {
				return t, err
			}
		}
	}
	first := ports.First + ports.kept
	size := ports.Last - first + 1
	if size <= 0 {
		return nil, ports.allKept(c.Type)
	}
	start := randomBelow(size)
	opened := 0
	for i := range size {
		port := first + (start+i)%size
		face.Port, face.Target = port, claims.TargetPort(c.Type, port)
		if _, taken := s.relay.store.Claims.Get(face.Target); taken || !p.scope.AllowsPort(port) {
			continue
		}
		t, err := s.open(ctx, p, face)
		if err == nil {
			return t, nil
		}
		var refusal *wire.Problem
		if opened++; !errors.As(err, &refusal) || refusal.Field == fieldPolicy || opened >= givenTries {
			return nil, err
		}
	}
	return nil, &wire.Problem{Code: wire.CodeLimit, Message: "no port is free; ask the relay's operator for more"}
}

// open takes the face's target and serves it. If the target cannot be served, the tunnel
// gives it back, unless it had it before. A target that its client already had stays the
// client's.
func (s *session) open(ctx context.Context, p placing, face routing.Face) (*tunnel, error) {
	r, c := s.relay, p.claim
	was, _ := r.store.Claims.Get(face.Target)
	fresh := was.ClientID != s.client.ID // its client did not have it
	had := slices.ContainsFunc(p.held, func(c claims.Claim) bool { return c.Target == face.Target })
	holder := claims.Holder{
		Slot: face.Slot, Instance: s.hello.Instance, Key: p.key, Type: c.Type, Mode: c.Mode, Ephemeral: c.Ephemeral,
	}
	taken, err := r.store.Claims.Take(ctx, face.Target, s.client.ID, holder, r.gone)
	switch field := fieldOf(face); {
	case errors.Is(err, claims.ErrTaken):
		return nil, &wire.Problem{Code: wire.CodeTaken, Field: field, Message: faceName(face) + " is taken by another client; choose another"}
	case errors.Is(err, claims.ErrTakenByOwn):
		return nil, &wire.Problem{Code: wire.CodeTaken, Field: field, Message: faceName(face) + " is taken by another tunnel of this client; choose another, or delete that tunnel"}
	case errors.Is(err, claims.ErrMode):
		return nil, &wire.Problem{Code: wire.CodeTaken, Field: "mode", Message: faceName(face) + " is in use in another mode; choose that mode, or another name or port"}
	case err != nil:
		if fresh && taken.Target != "" { // it may have been written
			r.doubts.add(taken, served{s, p.key})
		}
		return nil, err
	}
	giveBack := func() {
		if !had && (fresh || len(taken.Holders) > 1) {
			_ = r.store.Claims.Release(ctx, face.Target, s.client.ID, s.hello.Instance, p.key) // the first error says more
		}
	}
	if fresh {
		err = s.stillApart(ctx, p.scope, face)
	}
	if err == nil {
		err = r.store.Policies.Claimed(ctx, face.Target, s.client.ID, fresh || !taken.Created.Equal(was.Created))
	}
	if err == nil {
		err = s.guard(ctx, face.Target, p)
	}
	if err != nil {
		giveBack()
		return nil, err
	}
	r.store.Policies.Revision(face.Target) // waits until a policy set a moment ago is in force
	backend := routing.NewBackend(&s.agent, p.key, c)
	if p.before != nil && p.before.face == face {
		backend.Number = p.before.backend.Number
	} else {
		s.mu.Lock()
		s.next++
		backend.Number = s.next
		s.mu.Unlock()
	}
	ep, err := r.edge.Attach(face, backend)
	if err != nil {
		giveBack()
		if errors.Is(err, routing.ErrEnding) {
			return nil, shuttingDown()
		}
		return nil, r.portRefused(face, had, err)
	}
	if r.acme != nil && c.Type == wire.TypeHTTPS {
		r.acme.Want(face.Domain)
	}
	return &tunnel{face: face, backend: backend, endpoint: ep, url: r.publicURL(face), ephemeral: c.Ephemeral}, nil
}

// lost reports whether a tunnel that asks for no particular name or port cannot get back
// the one that it had. Otherwise that one is still its own, and the obstacle may be
// temporary.
func lost(err error) bool {
	var p *wire.Problem
	return errors.As(err, &p) && (p.Code == wire.CodeTaken || p.Code == wire.CodeForbidden) && p.Field != fieldPolicy
}

func fieldOf(f routing.Face) string {
	if f.Slot == claims.SlotPort {
		return "remote_port"
	}
	return "domain"
}

func faceName(f routing.Face) string {
	if f.Slot == claims.SlotPort {
		return fmt.Sprintf("the %s port %d", f.Type, f.Port)
	}
	if f.Slot == claims.SlotPrivate {
		return "the private name " + f.Domain
	}
	return "the name " + f.Domain
}

// giving says what happens to the name or port of a tunnel that is released.
type giving int

const (
	kept    giving = iota // the tunnel keeps it
	given                 // it is given back; the tunnel may get another
	deleted               // it is given back with the tunnel
)

// release closes a tunnel's face. It is no error if the tunnel does not exist. s.claiming
// must be held.
func (s *session) release(ctx context.Context, key string, name giving) error {
	s.mu.Lock()
	t := s.tunnels[key]
	delete(s.tunnels, key)
	s.mu.Unlock()
	if t != nil {
		s.relay.serving.remove(t.face.Target, s, key)
		s.relay.edge.Detach(t.face, t.backend)
		if s.relay.mesh != nil {
			s.relay.mesh.TunnelDown(s.id, key)
		}
		s.relay.log.Info("tunnel down", "client", s.client.Name, "key", key, "public_url", t.url)
	}
	if name == kept || s.gone.Load() {
		return nil
	}
	for _, c := range s.relay.store.Claims.OfTunnel(s.client.ID, s.hello.Instance, key) {
		// A tunnel deleted from a file may be back there tomorrow and want the same name;
		// names of ephemeral tunnels are not asked for again.
		ephemeral := slices.ContainsFunc(c.Holders, func(h claims.Holder) bool {
			return h.Instance == s.hello.Instance && h.Key == key && h.Ephemeral
		})
		if err := s.giveBack(ctx, c.Target, key, ephemeral && name == deleted); err != nil {
			return err
		}
	}
	return nil
}

func givenLabel() string {
	b := make([]byte, givenLen)
	for i := range b {
		b[i] = givenChars[randomBelow(len(givenChars))]
	}
	return string(b)
}

func randomBelow(n int) int {
	v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return int(v.Int64())
}

// publicURL returns the URL at which visitors reach a face.
func (r *Relay) publicURL(f routing.Face) string {
	switch f.Type {
	case wire.TypeHTTP:
		return "http://" + withPort(f.Domain, publicPort(r.cfg.PublicHTTPPort, r.edge.HTTPAddr()), 80)
	case wire.TypeHTTPS:
		return "https://" + withPort(f.Domain, publicPort(r.cfg.PublicHTTPSPort, r.edge.HTTPSAddr()), 443)
	case wire.TypeTLS:
		return "tls://" + withPort(f.Domain, publicPort(r.cfg.PublicHTTPSPort, r.edge.HTTPSAddr()), 0)
	}
	if client, name, ok := claims.PrivateOf(f.Target); ok {
		return wire.PrivateURL(client, name)
	}
	return f.Type + "://" + net.JoinHostPort(r.publicHost(), strconv.Itoa(f.Port))
}

func withPort(host string, port, usual int) string {
	if port == usual {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
