package agent

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestOriginThatShouldSpeakTLSIsDescribed holds that its owner reads what is wrong
// with it, and what to do.
func TestOriginThatShouldSpeakTLSIsDescribed(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{OriginTimeout: time.Second})
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
			tun := newTunnel("tun_1", TunnelSpec{Type: "http", LocalIP: "127.0.0.1", LocalPort: origin(t, c.handle), LocalScheme: schemeHTTPS}, time.Now())
			_, err := a.dialOrigin(t.Context(), tun.route.Load(), wire.StreamHTTP, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "deadline") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
