package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// config verifies the certificate of an origin elsewhere. An origin on this machine or in its
// private network hardly ever has a certificate that could be verified, and the path to it does not
// cross strangers' networks.
func (s Service) config(ip netip.Addr, protocol string) *tls.Config {
	near := ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	return &tls.Config{ServerName: s.known(), InsecureSkipVerify: near, NextProtos: []string{protocol}}
}

// insecure is the Unreached for a local service that accepts the connection but does not complete a
// TLS handshake within wait.
func (s Service) insecure(err error, wait time.Duration) error {
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		err = errors.New("it does not speak TLS; set local_scheme to http")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("no answer within %v", wait)
	}
	return fmt.Errorf("the local service at %s does not answer with TLS that can be trusted: %w", s, err)
}
