package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"
)

// describeTLS is describeOrigin for a local service that takes the connection, and
// does not get as far as a session of TLS within wait.
func describeTLS(err error, addr string, wait time.Duration) error {
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		err = errors.New("it does not speak TLS; set local_scheme to http")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("no answer within %v", wait)
	}
	return fmt.Errorf("the local service at %s does not answer with TLS that can be trusted: %w", addr, err)
}
