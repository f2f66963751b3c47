// Package diagnosis examines the path between this machine and a relay: whether both transports get
// through, whether the relay answers on a session, and how fast the path is. It says what it tried,
// what it found and what to do, and changes nothing.
package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"adit/internal/span"
	"adit/tunnel/agent/control"
	"adit/tunnel/agent/session"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Check is one finding.
type Check struct {
	Name   string `json:"name"`   // snake_case, stable
	Status string `json:"status"` // OK, Warning, Failed or Skipped
	Tried  string `json:"tried"`
	Result string `json:"result"`
	Advice string `json:"advice"` // what to do; empty if ok
}

// The results of a Check.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
	Skipped = "skipped"
)

// checkTime is how long one network check may take.
const checkTime = 8 * time.Second

// Transports makes a session with the relay of token at addr over each transport, and closes it
// without sending Hello.
func Transports(ctx context.Context, dial func(context.Context, link.DialConfig) (link.Session, error), token wire.Token, addr string) []Check {
	try := func(over link.Transport) Check { return transport(ctx, dial, token, addr, over) }
	udp, tls := try(link.DTLS), try(link.TLS)
	if udp.Status == Warning && tls.Status != OK { // both fail, so UDP is not the reason
		udp.Advice = "TLS does not reach the relay either: check whether it is running, and whether this machine has a network."
	}
	return []Check{udp, tls}
}

func transport(ctx context.Context, dial func(context.Context, link.DialConfig) (link.Session, error), token wire.Token, addr string, over link.Transport) Check {
	name := "relay_udp"
	if over == link.TLS {
		name = "relay_tls"
	}
	c := Check{Name: name, Status: OK, Tried: fmt.Sprintf("reach %s over %s", addr, strings.ToUpper(string(over)))}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	begin := time.Now()
	session, err := dial(ctx, link.DialConfig{Relay: addr, Fingerprint: token.Fingerprint, Transport: over})
	if err != nil {
		c.Status, c.Result = Failed, control.Describe(err, addr)
		c.Advice = "Check whether the relay is running, and whether a firewall blocks it."
		switch {
		case errors.Is(err, link.ErrUntrusted):
			c.Advice = "Ask the relay's operator for a new token, and do not use this network for secrets until you know who answered."
		case errors.Is(err, link.ErrNoRelay):
			c.Advice = "Check whether a browser shows a login page on this network, and ask the relay's operator whether its port is right."
		case over == link.DTLS:
			c.Status, c.Advice = Warning, "The network blocks UDP to the relay's port; adit then uses TLS, which is slower on lossy networks."
		}
		return c
	}
	c.Result = "reached in " + span.Text(time.Since(begin).Round(time.Millisecond))
	if port := portOf(session.RemoteAddr().String()); over == link.TLS && port == link.WebPort && port != portOf(addr) {
		c.Result += ", at port " + port + " alone"
	}
	_ = session.Close("only a check")
	return c
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// Answer checks whether the relay answers on a session.
func Answer(ctx context.Context, s *session.Session) Check {
	c := Check{Name: "relay_answers", Status: OK, Tried: "ask the relay for an answer"}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	begin := time.Now()
	if err := s.Control.Ping(ctx); err != nil {
		c.Status, c.Result, c.Advice = Failed, control.Describe(err, s.Addr), "Run `adit reconnect`; if that does not help, check whether the relay is running."
		return c
	}
	c.Result = "answered in " + span.Text(time.Since(begin))
	return c
}
