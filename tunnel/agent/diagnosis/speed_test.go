package diagnosis

import (
	"strings"
	"testing"

	"adit/tunnel/agent/traffic"
	"adit/tunnel/link"
)

func TestSpeedAdvice(t *testing.T) {
	const slow, fast = 1 << 20, 8 << 20
	for _, c := range []struct {
		name     string
		udp, tcp traffic.Bytes
		used     link.Transport
		set      link.Transport
		want     string
	}{
		{"as fast", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow * 5 / 4, Out: slow}, link.DTLS, link.Auto, ""},
		{"UDP is slowed", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.DTLS, link.Auto, `"tls"`},
		{"… and was left for now", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.TLS, link.Auto, `"tls"`},
		{"… and for good", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.TLS, link.TLS, ""},
		{"one way only, and faster the other", traffic.Bytes{In: fast, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.DTLS, link.Auto, ""},
		{"fast enough", traffic.Bytes{In: plenty, Out: plenty}, traffic.Bytes{In: 4 * plenty, Out: 4 * plenty}, link.DTLS, link.Auto, ""},
		{"TCP was chosen", traffic.Bytes{In: fast, Out: fast}, traffic.Bytes{In: slow, Out: slow}, link.TLS, link.TLS, `"auto"`},
		{"TCP was fallen back to", traffic.Bytes{In: fast, Out: fast}, traffic.Bytes{In: slow, Out: slow}, link.TLS, link.Auto, "reconnect"},
		{"UDP is used", traffic.Bytes{In: fast, Out: fast}, traffic.Bytes{In: slow, Out: slow}, link.DTLS, link.Auto, ""},
	} {
		udp, tcp := Speed{PerSecond: c.udp, InUse: c.used == link.DTLS}, Speed{PerSecond: c.tcp, InUse: c.used == link.TLS}
		if got := speedAdvice(udp, tcp, c.set); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		tcp.Error = "it broke"
		if got := speedAdvice(udp, tcp, c.set); got != "" {
			t.Errorf("%s, not measured: got %q", c.name, got)
		}
	}
}
