package definition

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"adit/tunnel/agent/origin"
	"adit/tunnel/wire"
)

// TestLimitsOfATunnel has values that are as great or as small as may be, and those
// that are one more or less.
func TestLimitsOfATunnel(t *testing.T) {
	const own = 37271
	guard := origin.Guard{Refuse: func(ip netip.Addr, port int) error {
		if ip.IsLoopback() && port == own {
			return errors.New("adit listens there itself")
		}
		return nil
	}}
	label := strings.Repeat("a", 63)
	longest := strings.Join([]string{label, label, label, label[:61]}, ".")
	for _, test := range []struct {
		spec  Tunnel
		field string // at fault; "": none
	}{
		{Tunnel{LocalPort: 1}, ""},
		{Tunnel{LocalPort: 0}, "local_port"},
		{Tunnel{LocalPort: 65535}, ""},
		{Tunnel{LocalPort: 65536}, "local_port"},
		{Tunnel{Type: wire.TypeTCP, LocalPort: 1, RemotePort: 65535}, ""},
		{Tunnel{Type: wire.TypeUDP, LocalPort: 1, RemotePort: 1}, ""},
		{Tunnel{Type: wire.TypeTCP, LocalPort: 1, RemotePort: -1}, "remote_port"},
		{Tunnel{Type: wire.TypeTCP, LocalPort: 1, RemotePort: 65536}, "remote_port"},
		{Tunnel{Type: wire.TypeHTTP, LocalPort: 1, RemotePort: 1}, "remote_port"},
		{Tunnel{LocalPort: 1, Name: strings.Repeat("é", maxName)}, ""},
		{Tunnel{LocalPort: 1, Name: strings.Repeat("é", maxName+1)}, "name"},
		{Tunnel{LocalPort: 1, Name: "a\xff"}, "name"},
		{Tunnel{LocalPort: 1, LocalIP: longest}, ""},
		{Tunnel{LocalPort: 1, LocalIP: longest + "a"}, "local_ip"},
		{Tunnel{LocalPort: 1, LocalIP: label + "a.lan"}, "local_ip"},
		{Tunnel{LocalPort: 1, LocalIP: "AZ_az-09.lan"}, ""},
		{Tunnel{LocalPort: 1, LocalIP: "project_app_1"}, ""}, // as containers are called
		{Tunnel{LocalPort: 1, LocalIP: "büro_nas.lan"}, ""},
		{Tunnel{LocalPort: 1, LocalIP: "ｍetadata.google.internal"}, "local_ip"}, // which is metadata to resolvers
		{Tunnel{LocalPort: 1, LocalIP: "nas.lan／x"}, "local_ip"},
		{Tunnel{LocalPort: 1, LocalIP: "-nas.lan"}, "local_ip"},
		{Tunnel{LocalPort: 1, LocalIP: "nas-.lan"}, "local_ip"},
		{Tunnel{LocalPort: 1, LocalIP: "na[s.lan"}, "local_ip"},
		{Tunnel{LocalPort: 1, LocalIP: "."}, "local_ip"},
		{Tunnel{LocalPort: own - 1, LocalIP: "localhost"}, ""},
		{Tunnel{LocalPort: own, LocalIP: "localhost"}, "local_ip"},
		{Tunnel{LocalPort: own, LocalIP: "App.Localhost."}, "local_ip"},
		{Tunnel{LocalPort: own, LocalIP: "nas.lan"}, ""},
		{Tunnel{LocalPort: 1, Domain: longest}, ""},
		{Tunnel{LocalPort: 1, Domain: longest + "a"}, "domain"},
		{Tunnel{LocalPort: 1, Domain: "az-09"}, ""},
		{Tunnel{LocalPort: 1, Domain: "a_z"}, "domain"},
		{Tunnel{LocalPort: 1, Domain: "shop-"}, "domain"},
		{Tunnel{LocalPort: 1, Domain: "*."}, "domain"},
		{Tunnel{LocalPort: 1, HostHeader: "[::1]:65535"}, ""},
		{Tunnel{LocalPort: 1, HostHeader: "[::1]"}, ""},
		{Tunnel{LocalPort: 1, HostHeader: "fe80::1%eth0"}, "host_header"},
		{Tunnel{LocalPort: 1, HostHeader: "nas.lan:65536"}, "host_header"},
		{Tunnel{LocalPort: 1, HostHeader: "nas.lan:0"}, "host_header"},
		{Tunnel{LocalPort: 1, HostHeader: "[nas.lan"}, "host_header"},
	} {
		_, no := test.spec.Normalize(guard)
		if (no != nil) != (test.field != "") || no != nil && no.Field != test.field {
			t.Errorf("%+v: got %v, want %q at fault", test.spec, no, test.field)
		}
	}
}
