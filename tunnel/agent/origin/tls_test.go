package origin

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// listen runs a service on a free port until the test ends, and returns the port.
func listen(t *testing.T, handle func(net.Conn)) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port
}

// TestOriginThatShouldSpeakTLSIsDescribed holds that its owner reads what is wrong
// with it, and what to do.
func TestOriginThatShouldSpeakTLSIsDescribed(t *testing.T) {
	d := &Dialer{Timeout: time.Second}
	for name, c := range map[string]struct {
		handle func(net.Conn)
		want   string
	}{
		"plain":  {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, "does not speak TLS; set local_scheme to http"},
		"silent": {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "TLS that can be trusted: no answer within 1s"},
		// It reads what it is told first: else the system resets the connection.
		"closes": {func(c net.Conn) { _, _ = c.Read(make([]byte, 16<<10)) }, "does not answer with TLS that can be trusted: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Dial(t.Context(), Service{Host: "127.0.0.1", Port: listen(t, c.handle), TLS: true}, nil, false)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "deadline") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
