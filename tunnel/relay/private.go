package relay

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// placePrivate takes a name for a private tunnel: the one that it asks for, the one that
// it had before, or a generated one. The name is below the client's own, so no other
// client has it.
func (s *session) placePrivate(ctx context.Context, p placing, face routing.Face) (*tunnel, error) {
	face.Domain = p.claim.Domain
	if face.Domain == "" {
		face.Domain = givenLabel()
		for _, old := range p.held {
			if client, name, ok := claims.PrivateOf(old.Target); ok && client == s.client.Name {
				face.Domain = name
			}
		}
	}
	face.Target = claims.TargetPrivate(s.client.Name, face.Domain)
	return s.open(ctx, p, face)
}

// serveVisit connects the agent to a private tunnel, if it may visit it. From then on,
// the stream is the visitor's connection. A GET request only asks whether the agent may.
func (s *session) serveVisit(w http.ResponseWriter, r *http.Request) error {
	asks, upgrade := r.Method == http.MethodGet, r.Header.Get("Upgrade")
	if !asks && upgrade != wire.UpgradeVisit && upgrade != wire.UpgradeVisitUDP {
		return wire.Invalid("", "a visit is asked for with Upgrade: %s or %s", wire.UpgradeVisit, wire.UpgradeVisitUDP)
	}
	client, name, err := wire.ParsePrivate(r.PathValue("client") + "/" + r.PathValue("name"))
	if err != nil {
		return wire.Invalid("", "%v", err)
	}
	if s.relay.roster.Closed() {
		return shuttingDown()
	}
	guest := s.guest()
	ep := s.relay.edge.Private(r.Context(), claims.TargetPrivate(client, name), guest)
	if ep == nil {
		// The answer is the same in all cases, so that nobody learns which tunnels exist.
		return wire.Forbidden("", "there is no private tunnel %s/%s that is running and lets this client in; ask its owner to start it, and to add %s to its visitors", client, name, s.client.Name)
	}
	if asks {
		w.Header().Set(wire.HeaderType, ep.Type)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	packets := upgrade == wire.UpgradeVisitUDP
	if packets != (ep.Type == wire.TypeUDP) {
		return wire.Invalid("type", "the private tunnel %s/%s is of type %s; visit it with that type", client, name, ep.Type)
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	control := conn.(*controlConn)
	agree := func(header string) error {
		_, err := conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n" + header + "\r\n"))
		return err
	}
	if packets {
		control.visits()
		s.relay.edge.VisitUDP(control.Stream, &s.agent, ep, guest, func(flow uint32) error {
			return agree(fmt.Sprintf("%s: %d\r\n", wire.HeaderFlow, flow))
		})
		return nil
	}
	if agree("") != nil {
		conn.Close()
		return nil
	}
	control.visits() // a visitor that does not even read that stays among the streams that are limited
	early, _ := buf.Reader.Peek(buf.Reader.Buffered())
	s.relay.edge.Visit(control.Stream, early, ep, guest)
	return nil
}

// guest describes the agent as a visitor.
func (s *session) guest() visitor.Guest {
	return visitor.Guest{
		Client: s.client.Name, ClientID: s.client.ID,
		Addr: addrPort(s.link.RemoteAddr().String()), Relay: addrPort(s.link.LocalAddr().String()),
	}
}

// serveInvitations answers with the private tunnels that let the agent in.
func (s *session) serveInvitations(w http.ResponseWriter, _ *http.Request) error {
	answer := wire.Invitations{Tunnels: []string{}}
	for _, face := range s.relay.edge.Invitations(s.guest(), s.agent.Instance) {
		client, name, ok := claims.PrivateOf(face.Target)
		if !ok || len(answer.Tunnels) == wire.MaxInvitations {
			continue
		}
		answer.Tunnels = append(answer.Tunnels, client+"/"+name)
		if face.Type == wire.TypeUDP {
			answer.UDP = append(answer.UDP, client+"/"+name)
		}
	}
	return writeJSON(w, answer)
}

// visits records that the stream no longer belongs to the control plane, whose streams
// are limited and end with the session's requests.
func (c *controlConn) visits() { c.once.Do(func() { c.session.streams.Add(-1) }) }

func addrPort(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

var _ link.Stream = (*controlConn)(nil)
