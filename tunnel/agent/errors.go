package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"adit/internal/socketerr"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// errWithheld is why a visitor of a udp tunnel has not got all answers.
var errWithheld = errors.New("an answer was not passed on: it is longer than a visitor may get whose address may be forged; the relay's operator can allow more by udp_amplification")

func notFound(id string) *refusal.Error {
	return &refusal.Error{Code: refusal.CodeNotFound, Message: fmt.Sprintf("there is no tunnel %q", refusal.Clip(id))}
}

func declaredError() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "this tunnel is declared in adit.toml; change it there", Field: "id"}
}

func busy() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeControlBusy, Message: "another change is being made; try again in a moment"}
}

func noSession() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "there is no session with the relay now; try again when it is connected"}
}

func notConfigured() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeNotConfigured, Message: "there is no auth token yet; configure one first"}
}

// relayError says what err of the relay at addr (empty: the one that the agent
// has) means to whoever asked for the change.
func relayError(err error, addr string) *refusal.Error {
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
		return &refusal.Error{Code: refusal.CodeRelayRejected, Message: describe(err, addr)}
	}
	return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: describe(err, addr)}
}

// final reports whether err is a refusal of the token, which trying again would
// not mend.
func final(err error) bool {
	var p *wire.Problem
	if !errors.As(err, &p) {
		return false
	}
	return p.Code == wire.CodeUnauthorized || p.Code == wire.CodeForbidden || p.Code == wire.CodeInvalid
}

// describe says in one sentence why there is no session with the relay at addr
// (empty: the relay), and what may help.
func describe(err error, addr string) string {
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
		return relay + " is not the one that the token names; if it was set up anew, ask its operator for a new token"
	case errors.As(err, &proxy):
		if proxy.Proxy == "" {
			return proxy.Error() + "; correct it and restart adit"
		}
		return fmt.Sprintf("the proxy %s of HTTPS_PROXY or ALL_PROXY does not lead to %s: %s", proxy.Proxy, relay, reason(proxy.Err))
	case errors.As(err, &dns):
		return fmt.Sprintf("the relay's name %s does not resolve; check the network and its DNS", dns.Name)
	case errors.As(err, &closed):
		return relay + " ended the session: " + closed.Reason
	case errors.Is(err, link.ErrTimeout):
		return relay + " has gone silent; trying again"
	case errors.Is(err, socketerr.Refused):
		return "nothing answers for " + relay + "; it may be down, or the port is another"
	case errors.Is(err, socketerr.NetworkUnreachable), errors.Is(err, socketerr.HostUnreachable), errors.Is(err, socketerr.NetworkDown):
		return "there is no way to " + relay + "; check the network"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return relay + " did not answer in time; it may be down, or a firewall may block its port for UDP and TCP"
	}
	return fmt.Sprintf("no session with %s: %v", relay, err)
}

// reason is err without what describe says better, for a part of a sentence.
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
