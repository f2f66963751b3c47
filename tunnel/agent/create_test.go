package agent

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adit/internal/atomicfile"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

func TestCreateRefusals(t *testing.T) {
	r := newFakeRelay(t)
	refuse := func(ip netip.Addr, port int) error {
		if ip.IsLoopback() && port == 37271 {
			return errors.New("adit listens there itself")
		}
		return nil
	}
	a, _ := configured(t, r, Config{Refuse: refuse})
	mustCreate(t, a, definition.Tunnel{LocalPort: 1, Name: "taken"})
	ok := definition.Tunnel{LocalPort: 80}
	with := func(f func(*definition.Tunnel)) definition.Tunnel { s := ok; f(&s); return s }
	for _, test := range []struct {
		field string
		spec  definition.Tunnel
	}{
		{"local_port", definition.Tunnel{}},
		{"local_port", definition.Tunnel{LocalPort: 65536}},
		{"local_port", definition.Tunnel{LocalPort: -1}},
		{"type", with(func(s *definition.Tunnel) { s.Type = "ftp" })},
		{"mode", with(func(s *definition.Tunnel) { s.Mode = "fastest" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "not a host" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "2852039166" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "0xa9fea9fe" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "169.254.43518" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "169.254.169.254" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "::ffff:169.254.169.254" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "64:ff9b::a9fe:a9fe" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "fd00:ec2::254" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "[FD00:EC2:0::254]" })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "metadata.google.internal." })},
		{"local_ip", with(func(s *definition.Tunnel) { s.LocalIP = "224.0.0.1" })},
		{"local_ip", definition.Tunnel{LocalPort: 37271}},
		{"local_ip", definition.Tunnel{LocalPort: 37271, LocalIP: "localhost"}},
		{"local_ip", definition.Tunnel{LocalPort: 37271, LocalIP: "::1"}},
		{"local_ip", definition.Tunnel{LocalPort: 37271, LocalIP: "0.0.0.0"}},
		{"local_ip", definition.Tunnel{LocalPort: 37271, LocalIP: "127.9.9.9"}},
		{"local_ip", definition.Tunnel{LocalPort: 37271, LocalIP: "::ffff:127.0.0.1"}},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = "-a" })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = "a..b" })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = "x.*.example.com" })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = "a b" })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = "192.0.2.1" })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = "http://example.com" })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = strings.Repeat("a", 64) })},
		{"domain", with(func(s *definition.Tunnel) { s.Domain = strings.Repeat("a.", 200) + "b" })},
		{"domain", with(func(s *definition.Tunnel) { s.Type, s.Domain = "tcp", "shop" })},
		{"domain", with(func(s *definition.Tunnel) { s.Type, s.Domain = "udp", "shop.example.com" })},
		{"name", with(func(s *definition.Tunnel) { s.Name = " a" })},
		{"name", with(func(s *definition.Tunnel) { s.Name = "a\nb" })},
		{"name", with(func(s *definition.Tunnel) { s.Name = strings.Repeat("é", 65) })},
		{"name", with(func(s *definition.Tunnel) { s.Name = "taken" })},
		{"local_scheme", with(func(s *definition.Tunnel) { s.LocalScheme = "ftp" })},
		{"local_scheme", with(func(s *definition.Tunnel) { s.Type, s.LocalScheme = "tcp", "http" })},
		{"remote_port", with(func(s *definition.Tunnel) { s.RemotePort = 20000 })},
		{"remote_port", with(func(s *definition.Tunnel) { s.Type, s.RemotePort = "tcp", 70000 })},
		{"host_header", with(func(s *definition.Tunnel) { s.HostHeader = "a\r\nb: c" })},
		{"host_header", with(func(s *definition.Tunnel) { s.HostHeader = "a:0" })},
		{"host_header", with(func(s *definition.Tunnel) { s.Type, s.HostHeader = "tls", "a" })},
		{"request_headers", with(func(s *definition.Tunnel) { s.RequestHeaders = wire.ChangeHeaders(map[string]string{"Host": "a"}) })},
		{"request_headers", with(func(s *definition.Tunnel) {
			s.RequestHeaders = wire.ChangeHeaders(map[string]string{"X-Env": "a\r\nX-Evil: b"})
		})},
		{"request_headers", with(func(s *definition.Tunnel) {
			s.Type, s.RequestHeaders = "tls", wire.ChangeHeaders(map[string]string{"X-Env": "a"})
		})},
		{"response_headers", with(func(s *definition.Tunnel) { s.ResponseHeaders = wire.ChangeHeaders(map[string]string{"Trailer": ""}) })},
		{"response_headers", with(func(s *definition.Tunnel) {
			s.Type, s.ResponseHeaders = "tcp", wire.ChangeHeaders(map[string]string{"Server": ""})
		})},
		{"proxy_protocol", with(func(s *definition.Tunnel) { s.ProxyProtocol = "v3" })},
		{"proxy_protocol", with(func(s *definition.Tunnel) { s.Type, s.ProxyProtocol = "udp", "v2" })},
	} {
		_, err := a.Create(t.Context(), test.spec)
		var e *refusal.Error
		if !errors.As(err, &e) || e.Code != refusal.CodeInvalidParameter || e.Field != test.field {
			t.Errorf("%+v: got error %#v, want %s at fault", test.spec, err, test.field)
		}
	}
	if _, err := a.Create(t.Context(), with(func(s *definition.Tunnel) { s.Mode = "fastest" })); !strings.Contains(err.Error(), "standard, balanced") {
		t.Errorf("mode: got %v, want the list of the known ones", err)
	}
	if n := len(a.Tunnels()); n != 1 {
		t.Errorf("got %d tunnels, want none of the refused", n)
	}
}

func TestNameThatMeansARefusedAddressIsRefused(t *testing.T) {
	refuse := func(ip netip.Addr, port int) error {
		if ip.IsLoopback() && port == 37271 {
			return errors.New("adit listens there itself")
		}
		return nil
	}
	a, _ := configured(t, newFakeRelay(t), Config{Refuse: refuse})
	names := map[string]string{"laptop": "127.0.1.1", "rebound.example": "169.254.169.254", "six.example": "fd00:ec2::254", "nas": "192.0.2.7"}
	a.origins.Lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if ip, ok := names[host]; ok {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr(ip)}, nil
		}
		return nil, errors.New("no such name")
	}
	fine := mustCreate(t, a, definition.Tunnel{LocalPort: 37271, LocalIP: "nas"})
	mustCreate(t, a, definition.Tunnel{LocalPort: 37271, LocalIP: "not-yet-there"})
	for _, name := range []string{"laptop", "rebound.example", "six.example"} {
		_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 37271, LocalIP: name})
		wantCode(t, err, refusal.CodeInvalidParameter, "local_ip")
		_, err = a.Change(t.Context(), fine.ID, definition.Patch{LocalIP: &name})
		wantCode(t, err, refusal.CodeInvalidParameter, "local_ip")
	}
	other := 80
	mustCreate(t, a, definition.Tunnel{LocalPort: other, LocalIP: "laptop"})
}

func TestNamesAreBroughtToOneForm(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	for domain, want := range map[string]string{
		"Shop": "shop", "Bücher.Example.com.": "xn--bcher-kva.example.com", "例え": "xn--r8jz45g",
	} {
		if got := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: domain}); got.Domain != want {
			t.Errorf("%s: got %s, want %s", domain, got.Domain, want)
		}
	}
	for ip, want := range map[string]string{"::ffff:10.0.0.1": "10.0.0.1", "[::1]": "::1", "NAS.local.": "nas.local", "LOCALHOST": "localhost"} {
		if got := mustCreate(t, a, definition.Tunnel{LocalPort: 80, LocalIP: ip}); got.LocalIP != want {
			t.Errorf("%s: got %s, want %s", ip, got.LocalIP, want)
		}
	}
}

func TestRelaysRefusalLeavesNoTunnel(t *testing.T) {
	r := newFakeRelay(t)
	r.onClaim = func(string, wire.Claim) *wire.Problem {
		return &wire.Problem{Code: wire.CodeTaken, Message: "shop is another's", Field: "domain"}
	}
	a, _ := configured(t, r, Config{})
	_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80, Domain: "shop"})
	wantCode(t, err, refusal.CodeRelayRejected, "domain")
	if !strings.Contains(err.Error(), "shop is another's") {
		t.Errorf("got %v, want the relay's reason", err)
	}
	if len(a.Tunnels()) != 0 {
		t.Error("the tunnel is there")
	}
	data, err := os.ReadFile(filepath.Join(a.cfg.StateDir, tunnelsFile))
	if err != nil || strings.Contains(string(data), "tun_") {
		t.Errorf("tunnels.json: got %s, %v, want it empty", data, err)
	}
}

// A tunnel that could not be saved, and that the events have told of meanwhile, is
// told to be gone: whoever follows them would show it for ever.
func TestATunnelThatWasToldAndNotSavedIsToldToBeGone(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	events := a.Subscribe(nil)
	setWrite(a, func(path string, data []byte, perm fs.FileMode) error {
		if !strings.Contains(string(data), `"spec"`) { // only what is to be given back
			return atomicfile.Write(path, data, perm)
		}
		a.publish() // as the session's keeper may at any time
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	})
	if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80}); err == nil {
		t.Fatal("a tunnel that was not saved was created")
	}
	setWrite(a, atomicfile.Write)
	mustCreate(t, a, definition.Tunnel{LocalPort: 81, Name: "last"})
	shown := map[string]string{}
	for shown["last"] == "" {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if told, ok := e.Data.(TunnelEvent); ok {
			shown[told.Tunnel.Name] = told.Action
		}
	}
	if got := shown["https-80"]; got != "deleted" {
		t.Errorf("the last event of the tunnel: got %q, want deleted", got)
	}
}

// TestGrantTooLongToKeepIsRefused has the relay give what would let tunnels.json grow
// beyond what is read of it.
func TestGrantTooLongToKeepIsRefused(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, _ := configured(t, r, Config{StateDir: dir})
	for name, give := range map[string]func(*wire.Grant){
		"public URL": func(g *wire.Grant) { g.PublicURL += "/" + strings.Repeat("x", 100_000) },
		"domain":     func(g *wire.Grant) { g.Domain = strings.Repeat("x", 100_000) },
	} {
		r.set(func() { r.onGrant = give })
		_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80})
		var no *refusal.Error
		if !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected {
			t.Errorf("%s: got %.200v, want %s", name, err, refusal.CodeRelayRejected)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, tunnelsFile)); err != nil || info.Size() > 10_000 {
		t.Errorf("%s: %+v, %v", tunnelsFile, info, err)
	}
}

// TestPublicURLThatIsNoAddressIsRefused: programs open it for people, and what opens the
// files and programs of this machine is not a relay's to give.
func TestPublicURLThatIsNoAddressIsRefused(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{StateDir: t.TempDir()})
	for _, url := range []string{
		"file:///etc/passwd", `\\\\evil.test\share\x.exe`, "ms-settings:x", "javascript:alert(1)", "https://", "https:evil", "https://a b/", "HTTPS//x",
		"https://shop.relay.test/\x1b[2J", "-x", "shop.relay.test",
	} {
		r.set(func() { r.onGrant = func(g *wire.Grant) { g.PublicURL = url } })
		_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80})
		var no *refusal.Error
		if !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected {
			t.Errorf("%q: got %v, want %s", url, err, refusal.CodeRelayRejected)
		}
	}
	for _, url := range []string{"https://shop.relay.test:8443", "http://*.shop.relay.test", "tls://shop.relay.test:443", "tcp://[2001:db8::1]:20000", "udp://relay.test:20000", "adit://shop/ssh"} {
		r.set(func() { r.onGrant = func(g *wire.Grant) { g.PublicURL = url } })
		if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
