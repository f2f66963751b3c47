package definition

import (
	"testing"

	"adit/tunnel/agent/origin"
	"adit/tunnel/wire"
)

// TestAnotherTypeTakesWhatItHas and leaves the rest behind, which would be refused.
func TestAnotherTypeTakesWhatItHas(t *testing.T) {
	web := Tunnel{
		Type: wire.TypeHTTP, LocalPort: 8443, LocalScheme: SchemeHTTPS, HostHeader: "nas.lan", ProxyProtocol: "v2",
		RequestHeaders: Headers(map[string]string{"X-A": "b"}), Paths: []Path{{Path: "/api", LocalPort: 8080}},
	}
	for name, c := range map[string]struct {
		before Tunnel
		patch  Patch
		want   func(*Tunnel)
	}{
		"http becomes https": {web, Patch{Type: new(wire.TypeHTTPS)}, func(w *Tunnel) { w.Type = wire.TypeHTTPS }},
		"http becomes tcp": {web, Patch{Type: new(wire.TypeTCP)}, func(w *Tunnel) {
			*w = Tunnel{Type: wire.TypeTCP, LocalPort: 8443, ProxyProtocol: "v2"}
		}},
		"http becomes udp": {web, Patch{Type: new(wire.TypeUDP)}, func(w *Tunnel) {
			*w = Tunnel{Type: wire.TypeUDP, LocalPort: 8443}
		}},
		"what is asked for besides": {web, Patch{Type: new(wire.TypeHTTPS), LocalScheme: new(SchemeHTTP)}, func(w *Tunnel) {
			w.Type, w.LocalScheme = wire.TypeHTTPS, SchemeHTTP
		}},
	} {
		want := c.before
		c.want(&want)
		want, no := want.Normalize(origin.Guard{})
		if no != nil {
			t.Fatal(no)
		}
		before, no := c.before.Normalize(origin.Guard{})
		if no != nil {
			t.Fatal(no)
		}
		got, no := before.Patched(c.patch).Normalize(origin.Guard{})
		if no != nil || !got.Equal(want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, no, want)
		}
	}
	udp := Patch{Type: new(wire.TypeUDP), ProxyProtocol: new("v1")}
	if _, no := web.Patched(udp).Normalize(origin.Guard{}); no == nil || no.Field != "proxy_protocol" {
		t.Errorf("what no udp tunnel has is asked for: got %v", no)
	}
}
