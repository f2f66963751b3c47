package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestVisitorsLeaveARelayItsDescriptors: strangers who open more connections than the
// system lets the relay have keep neither agents, nor the operator, nor other visitors
// away, and the relay goes on to write what it is told.
func TestVisitorsLeaveARelayItsDescriptors(t *testing.T) {
	needLoopback(t)
	r := prepareRelay(t)
	r.program = filepath.Join(t.TempDir(), "adit")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n 1000 && exec %s \"$@\"\n", program)
	if err := os.WriteFile(r.program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r.start()
	a := newAgent(t)
	a.configure(r.client("first"))
	made := a.publish("http", newOrigin(t), map[string]any{"domain": "site"})
	await(t, "the site answers", func() error { return getOKBy(r.visitor(), made.PublicURL+"/file?size=10") })

	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for i := range 2000 {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%20))}, Timeout: 5 * time.Second}
		conn, err := from.DialContext(context.Background(), "tcp", r.http)
		if err != nil {
			continue // turned away
		}
		held = append(held, conn)
	}
	visitor := r.visitor()
	visitor.Timeout = 10 * time.Second
	visitor.Transport.(*http.Transport).DisableKeepAlives = true
	if err := getOKBy(visitor, made.PublicURL+"/file?size=10"); err != nil {
		t.Errorf("another visitor is kept away: %v", err)
	}
	other := newAgent(t)
	other.configure(r.client("second"))
	other.awaitConnected()
}
