package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"adit/internal/socketerr"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// refused is an unsuccessful response from the relay. It wraps the *wire.Problem.
type refused struct {
	status  int
	problem *wire.Problem
}

func (e *refused) Error() string { return e.problem.Message }
func (e *refused) Unwrap() error { return e.problem }

func problem(status int, body []byte) error {
	p := &wire.Problem{}
	if json.Unmarshal(body, p) != nil || p.Message == "" {
		p = &wire.Problem{Code: wire.CodeUnavailable, Message: fmt.Sprintf("the relay answered with status %d", status)}
		if status == http.StatusUnauthorized {
			p.Code = wire.CodeUnauthorized
		}
	}
	p.Message = Clip(p.Message)
	return &refused{status: status, problem: p}
}

// Clip limits the length of a message from or for the relay.
func Clip(s string) string {
	const most = 512
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Answered reports whether err is an answer from the relay, rather than the lack of one.
func Answered(err error) bool {
	var p *wire.Problem
	return errors.As(err, &p)
}

// Refused reports whether the relay has refused the request, so that asking again would not help.
func Refused(err error) bool {
	var p *wire.Problem
	return errors.As(err, &p) && p.Code != wire.CodeUnavailable
}

// Final reports whether err is a refusal of the token that retrying would not change.
func Final(err error) bool {
	var p *wire.Problem
	if !errors.As(err, &p) {
		return false
	}
	return p.Code == wire.CodeUnauthorized || p.Code == wire.CodeForbidden || p.Code == wire.CodeInvalid
}

// Refusal translates err of the relay at addr (empty: the relay) for the caller who asked for a
// change.
func Refusal(err error, addr string) *refusal.Error {
	var own *refusal.Error
	if errors.As(err, &own) {
		return own
	}
	var p *wire.Problem
	if errors.As(err, &p) {
		if p.Code == wire.CodeUnavailable {
			return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "the relay cannot do it now: " + p.Message}
		}
		if p.Code == wire.CodeChanged {
			return &refusal.Error{Code: refusal.CodeChanged, Message: p.Message}
		}
		return &refusal.Error{Code: refusal.CodeRelayRejected, Message: "the relay refused: " + p.Message, Field: p.Field}
	}
	if errors.Is(err, link.ErrUntrusted) {
		return &refusal.Error{Code: refusal.CodeRelayRejected, Message: Describe(err, addr)}
	}
	return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: Describe(err, addr)}
}

// Describe says in one sentence why there is no session with the relay at addr (empty: the relay),
// and what may help.
func Describe(err error, addr string) string {
	relay := "the relay"
	if addr != "" {
		relay += " at " + addr
	}
	var (
		p      *wire.Problem
		dns    *net.DNSError
		closed *link.CloseError
		proxy  *link.ProxyError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &p):
		switch p.Code {
		case wire.CodeUnauthorized:
			if p.RetryAfter > 0 {
				return relay + " refuses the token for now: " + p.Message + "; ask its operator"
			}
			return relay + " refused the token: " + p.Message + "; ask its operator for a new one"
		}
		return relay + " refused: " + p.Message
	case errors.Is(err, link.ErrUntrusted):
		return relay + " is not the one that the token names; if it was set up again, ask its operator for a new token; if not, check what answers in its place: a proxy that opens TLS, or this network's login page"
	case errors.As(err, &proxy):
		if proxy.Proxy == "" {
			return proxy.Error() + "; correct it and restart adit"
		}
		return fmt.Sprintf("the proxy %s of HTTPS_PROXY or ALL_PROXY does not lead to %s: %s", proxy.Proxy, relay, reason(proxy.Err))
	case errors.Is(err, link.ErrNoRelay):
		return "something else answers in place of " + relay + ": another program at its port, a proxy that opens TLS, or this network's login page"
	case errors.As(err, &dns):
		return fmt.Sprintf("the relay's name %s does not resolve; check the network and its DNS", dns.Name)
	case errors.As(err, &closed):
		return relay + " ended the session: " + closed.Reason
	case errors.Is(err, link.ErrTimeout):
		return relay + " has gone silent; trying again"
	case errors.Is(err, link.ErrForgotten):
		return relay + " was restarted, or could not reach this machine for a while; trying again"
	case errors.Is(err, socketerr.Refused):
		return "nothing answers for " + relay + "; it may be down, or the port may be wrong"
	case errors.Is(err, socketerr.NetworkUnreachable), errors.Is(err, socketerr.HostUnreachable), errors.Is(err, socketerr.NetworkDown):
		return "there is no way to " + relay + "; check the network"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return relay + " did not answer in time; it may be down, or a firewall may block its port for UDP and TCP"
	}
	return fmt.Sprintf("no session with %s: %v", relay, err)
}

// reason returns err as part of a sentence, without what Describe says better.
func reason(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s does not resolve", dns.Name)
	case errors.Is(err, socketerr.Refused):
		return "nothing answers there"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "it did not answer in time"
	}
	return err.Error()
}
