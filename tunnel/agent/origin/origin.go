// Package origin reaches the local services that tunnels publish. It knows which addresses no
// tunnel may lead to, finds a service's addresses, connects to it over TCP, TLS or UDP, and says in
// one sentence why it cannot be reached. What to send there is left to package forward, and which
// services there are to package definition.
package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"adit/internal/socketerr"
)

// Service is a local service.
type Service struct {
	Host string // an address, or a name
	Port int
	TLS  bool
	// Known is the name or address, with or without a port, by which the service identifies itself
	// in TLS. If empty, it is Host.
	Known string
}

// String returns the service's address, host:port.
func (s Service) String() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Named reports whether the service is given by a name, which may resolve to a different address
// later.
func (s Service) Named() bool {
	_, err := netip.ParseAddr(s.Host)
	return err != nil
}

// known is the name that its certificate is to have.
func (s Service) known() string {
	if host, _, err := net.SplitHostPort(s.Known); err == nil {
		return host
	}
	return cmp.Or(s.Known, s.Host)
}

// Unreached says why the service cannot be reached. It is meant for the agent's owner and the
// relay's operator; visitors do not see it.
func (s Service) Unreached(err error) error {
	switch {
	case errors.Is(err, socketerr.Refused):
		return fmt.Errorf("nothing listens at the local address %s", s)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the local service at %s does not accept connections", s)
	}
	var no net.Error
	if errors.As(err, &no) && no.Timeout() {
		return fmt.Errorf("the local service at %s does not accept connections", s)
	}
	return fmt.Errorf("the local service at %s cannot be reached: %w", s, err)
}
