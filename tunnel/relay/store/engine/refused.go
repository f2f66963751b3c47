package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// hint tells an operator what to check if a cluster cannot be connected to.
func hint(err error) string {
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return "; see that nats.ca is the authority that its certificate is of"
	case isAlert(err):
		return "; see that nats.cert and nats.key are of an authority that it knows, and have not run out"
	case errors.Is(err, nats.ErrNoServers):
		return "; see that one of them runs, and can be reached from here"
	case isAuthorization(err):
		return "; see that nats.credentials, nats.cert, or the user and password in nats.urls are what it knows this relay by"
	}
	return ""
}

const (
	awayLook = 5 * time.Second // how often to look for the reason why a cluster is away
	askTime  = 2 * time.Second // for a server to say why
)

type dialer func(network, address string) (net.Conn, error)

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// tellDistrust logs if the cluster is away because one side does not accept the other's
// certificate, for example because it has expired. The library does not report that. It
// returns when ctx ends, or when all servers have been asked.
func (e *Engine) tellDistrust(ctx context.Context) (told bool) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	dial := dialer(func(network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{Timeout: askTime}).DialContext(ctx, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { c.Close() })
		}
		return c, err
	})
	conn, err := nats.Connect(strings.Join(e.cfg.URLs, ","), append(e.identity(), nats.NoReconnect(), nats.Timeout(askTime), nats.SetCustomDialer(dial))...)
	if err == nil {
		conn.Close()
	}
	if !isTrust(err) {
		return false
	}
	e.log.Warn("NATS and this node do not trust each other; it is tried again", "error", fmt.Errorf("%w%s", err, hint(err)))
	return true
}

// isTrust reports whether an error means that one side does not accept the other's
// certificate.
func isTrust(err error) bool {
	var own *tls.CertificateVerificationError
	return errors.As(err, &own) || isAlert(err)
}

// isAlert reports whether an error is the other side's TLS alert about this side, or may be
// one that was lost when the connection was closed.
func isAlert(err error) bool {
	var own *tls.CertificateVerificationError
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" || errors.Is(err, nats.ErrTLS) && !errors.As(err, &own)
}

// isAuthorization reports whether an error means that the cluster does not recognise the node,
// or no longer does.
func isAuthorization(err error) bool {
	for _, is := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// redacted returns a list of URLs without their passwords.
func redacted(list []string) string {
	var shown []string
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil {
			shown = append(shown, "an address that does not parse")
			continue
		}
		shown = append(shown, u.Redacted())
	}
	return strings.Join(shown, ", ")
}
