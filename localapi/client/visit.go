package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
)

// The protocols to which a visit's connection is upgraded.
const (
	upgradeVisit    = "adit-visit"
	upgradeVisitUDP = "adit-visit-udp"
)

// VisitConn is a connection to a private tunnel of another client. CloseWrite ends only its sending
// direction: the rest of the service's data can still be read. If the service breaks the
// connection, or it is lost on the way, reads return an error other than io.EOF.
type VisitConn interface {
	io.ReadWriteCloser
	CloseWrite() error
	// Reset breaks the connection, so that the service does not take what it has received for
	// complete.
	Reset() error
}

// visitConn is a VisitConn over HTTP.
type visitConn struct {
	halfCloser
	cut interface{ SetLinger(sec int) error } // what carries it; nil if it can only be closed
}

type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

func (c visitConn) Reset() error {
	if c.cut != nil {
		_ = c.cut.SetLinger(0) // one that has gone is broken already
	}
	return c.Close()
}

// Visits returns the visits that adit.toml declares, by address.
func (c *Client) Visits(ctx context.Context) ([]Visit, error) {
	return list[Visit](ctx, c, api+"/visits")
}

// Invitations returns the running private tunnels of other clients that admit this agent, sorted by
// name, at most 1,000.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	return list[Invitation](ctx, c, api+"/invitations")
}

// MayVisit returns the private tunnel CLIENT/NAME if it is running and admits this agent; its local
// service is not contacted. If it cannot be visited now, the error says why: an *Error with the
// code ErrorCodeRelayRejected if there is no such tunnel.
func (c *Client) MayVisit(ctx context.Context, tunnel string) (Invitation, error) {
	path, err := visitPath(tunnel)
	if err != nil {
		return Invitation{}, err
	}
	return get[Invitation](ctx, c, path)
}

// Visit connects to the private tunnel CLIENT/NAME of type tcp. ctx bounds only the connecting.
func (c *Client) Visit(ctx context.Context, tunnel string) (VisitConn, error) {
	return c.visit(ctx, tunnel, upgradeVisit)
}

// VisitUDP connects one sender of packets to the private tunnel CLIENT/NAME of type udp. On the
// connection, each packet is preceded by its length (uint16, big-endian), in both directions. The
// connection ends with the tunnel, and after about a minute without packets. ctx bounds only the
// connecting.
func (c *Client) VisitUDP(ctx context.Context, tunnel string) (VisitConn, error) {
	return c.visit(ctx, tunnel, upgradeVisitUDP)
}

func (c *Client) visit(ctx context.Context, tunnel, upgrade string) (VisitConn, error) {
	path, err := visitPath(tunnel)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgrade}}
	var by visitConn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		by.cut, _ = got.Conn.(interface{ SetLinger(sec int) error })
	}})
	resp, err := c.send(ctx, http.MethodPost, path, nil, header)
	if err != nil {
		return nil, err
	}
	var ok bool
	by.halfCloser, ok = resp.Body.(halfCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		resp.Body.Close()
		return nil, errors.New("the daemon's answer to a visit is no connection")
	}
	return by, nil
}

func visitPath(tunnel string) (string, error) {
	client, name, ok := strings.Cut(strings.TrimPrefix(tunnel, "adit://"), "/")
	if !ok || client == "" || name == "" || strings.Contains(name, "/") {
		return "", &Error{Status: http.StatusBadRequest, Code: ErrorCodeInvalidParameter, Field: "tunnel", Message: "a private tunnel is called CLIENT/NAME, such as nas/ssh"}
	}
	return api + "/visits/" + url.PathEscape(client) + "/" + url.PathEscape(name), nil
}
