package localapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"adit/tunnel/agent"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/visits"
)

// These are the protocols to which a visit's connection is upgraded. After the response, its bytes
// are the tunnel's; for a udp tunnel they are packets, each preceded by its length.
const (
	upgradeVisit    = "adit-visit"
	upgradeVisitUDP = "adit-visit-udp"
)

// Visitor leads to private tunnels of the relay's other clients.
type Visitor interface {
	Visits() []visits.Visit
	Invitations(ctx context.Context) ([]agent.Invitation, error)
	MayVisit(ctx context.Context, tunnel string) (agent.Invitation, error)
	Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error
	VisitUDP(ctx context.Context, tunnel string, take func() (net.Conn, error)) error
}

func (s *Server) listVisits(w http.ResponseWriter, _ *http.Request) error {
	return writeItems(w, s.cfg.Agent.Visits())
}

func (s *Server) listInvitations(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	list, err := s.cfg.Agent.Invitations(ctx)
	if err != nil {
		return err
	}
	return writeItems(w, list)
}

// tunnelOf returns the private tunnel that a request is about.
func tunnelOf(r *http.Request) string {
	name := httprouter.ParamsFromContext(r.Context())
	return name.ByName("client") + "/" + name.ByName("name")
}

func (s *Server) mayVisit(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	found, err := s.cfg.Agent.MayVisit(ctx, tunnelOf(r))
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, found)
}

// visitTunnel turns the request's connection into one to a private tunnel.
func (s *Server) visitTunnel(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	upgrade := strings.ToLower(r.Header.Get("Upgrade"))
	if upgrade != upgradeVisit && upgrade != upgradeVisitUDP {
		return invalid("Upgrade", "send the request with the headers Connection: Upgrade and Upgrade: "+upgradeVisit+", or "+upgradeVisitUDP+" for a tunnel of type udp")
	}
	if err := s.streams.visits.take("%d visits are open; close one first"); err != nil {
		return err
	}
	defer s.streams.visits.release()
	// Once the connection is taken over, whoever reads it sees its end; the request's context does
	// not survive that.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if ending, ok := ctx.Value(streamKey{}).(context.Context); ok {
		defer context.AfterFunc(ending, cancel)()
	}
	left := context.AfterFunc(r.Context(), cancel)
	defer left()
	taken := false
	take := func() (splice.HalfCloser, error) {
		left()
		taken = true
		return takeOver(w, upgrade)
	}
	var err error
	if upgrade == upgradeVisitUDP {
		err = s.cfg.Agent.VisitUDP(ctx, tunnelOf(r), func() (net.Conn, error) { return take() })
	} else {
		err = s.cfg.Agent.Visit(ctx, tunnelOf(r), take)
	}
	if taken || r.Context().Err() != nil {
		return nil // nobody hears an answer
	}
	return err
}

var errEarly = errors.New("bytes came before the answer")

// takeOver answers with the change of protocol, and returns the connection.
func takeOver(w http.ResponseWriter, upgrade string) (splice.HalfCloser, error) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take a visit's connection: %w", err)
	}
	half, ok := conn.(splice.HalfCloser)
	if !ok || buf.Reader.Buffered() > 0 {
		conn.Close()
		return nil, errEarly
	}
	if _, err := conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n")); err != nil {
		conn.Close()
		return nil, err
	}
	return half, nil
}
