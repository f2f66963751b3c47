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

// The protocols that a visit's connection changes to.
const (
	upgradeVisit    = "adit-visit"
	upgradeVisitUDP = "adit-visit-udp"
)

// VisitConn is a connection to a private tunnel of another client. CloseWrite ends its
// sending direction alone: what the tunnel's service still has to say can be read. Where
// the service breaks the connection, or it is lost on the way, reading ends in an error
// other than io.EOF.
type VisitConn interface {
	io.ReadWriteCloser
	CloseWrite() error
	// Reset breaks the connection: the service does not take what it has for the whole.
	Reset() error
}

// visitConn is a VisitConn by HTTP.
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

// Invitations returns the private tunnels of others that run and let this agent in, by
// name and 1,000 at most.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	return list[Invitation](ctx, c, api+"/invitations")
}

// MayVisit returns the private tunnel CLIENT/NAME, which runs and lets this agent in; its
// local service is not asked. If it cannot be visited now the error says why: an *Error
// of the code ErrorCodeRelayRejected if there is none such.
func (c *Client) MayVisit(ctx context.Context, tunnel string) (Invitation, error) {
	path, err := visitPath(tunnel)
	if err != nil {
		return Invitation{}, err
	}
	return get[Invitation](ctx, c, path)
}

// Visit connects to the private tunnel CLIENT/NAME of type tcp. ctx is for the connecting
// alone.
func (c *Client) Visit(ctx context.Context, tunnel string) (VisitConn, error) {
	return c.visit(ctx, tunnel, upgradeVisit)
}

// VisitUDP connects one sender of packets to the private tunnel CLIENT/NAME of type udp.
// On the connection each packet is behind its length (uint16, big endian), both ways. It
// ends when the tunnel does, and after a minute or so in which nothing passes. ctx is for the
// connecting alone.
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
