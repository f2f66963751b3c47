package nodes

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNodeOutOfReachIsLoggedOnce keeps a listed node unreachable for an hour.
func TestNodeOutOfReachIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tries := 0
		m := &Mesh{log: slog.New(slog.NewTextHandler(&log, nil)), cfg: Config{Certificate: func() (*tls.Certificate, error) {
			tries++
			return nil, errors.New("out of reach")
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			newPeer(m, Node{ID: "n2", Address: "192.0.2.2:1"}).run(ctx)
		}()
		time.Sleep(time.Hour)
		cancel()
		<-ended
		if n := strings.Count(log.String(), "no session with a node"); n != 1 || tries < 100 {
			t.Errorf("%d lines of %d tries, want one of many", n, tries)
		}
	})
}
