package localapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/link"
)

// sick is a fake agent with another state.
type sick struct {
	*fakeAgent
	status agent.Status
	auth   agent.AuthStatus
}

func (s sick) Status() agent.Status   { return s.status }
func (s sick) Auth() agent.AuthStatus { return s.auth }

// testWorld refuses and answers by address.
func testWorld(refused map[string]error, env map[string]string) world {
	return world{
		dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			if err := refused[addr]; err != nil {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
			}
			a, b := net.Pipe()
			b.Close()
			return a, nil
		},
		lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if err := refused[host]; err != nil {
				return nil, err
			}
			return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
		},
		getenv: func(name string) string { return env[name] },
		proxy: func(string) (*url.URL, error) {
			if env["HTTPS_PROXY"] == "" || env["NO_PROXY"] != "" {
				return nil, nil
			}
			return link.ParseProxy(env["HTTPS_PROXY"])
		},
		now: func() time.Time { return time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC) },
	}
}

func outcomes(checks []diagnosis.Check) string {
	var all []string
	for _, c := range checks {
		all = append(all, c.Name+"="+c.Status)
	}
	return strings.Join(all, " ")
}

func TestDiagnosisFindsWhatIsWrong(t *testing.T) {
	connected := newFakeAgent().Status()
	lost := connected
	lost.Connected, lost.State, lost.LastError, lost.Transport = false, agent.StateReconnecting, "the relay is silent", ""
	fallback := connected
	fallback.Transport = "tls"
	rejected := lost
	rejected.State = agent.StateRejected
	fresh := agent.Status{State: agent.StateUnconfigured}
	auth := newFakeAgent().Auth()
	refusal := errors.New("connection refused")
	lastKnown := testWorld(nil, nil)
	lastKnown.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, &net.DNSError{Err: "server misbehaving"}
	}
	late := testWorld(nil, nil)
	late.now = func() time.Time { return time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name   string
		world  world
		status agent.Status
		auth   agent.AuthStatus
		want   string
	}{
		{
			"all is well", testWorld(nil, nil), connected, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=ok relay_udp=ok session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"nothing configured", testWorld(nil, nil), fresh,
			agent.AuthStatus{},
			"token=failed clock=ok proxy=ok relay_dns=skipped relay_tcp=skipped relay_udp=skipped session=skipped listener=ok local_service=ok local_service=ok",
		},
		{
			"no name server", testWorld(map[string]error{"relay.example": &net.DNSError{Err: "server misbehaving"}}, nil), lost, auth,
			"token=ok clock=ok proxy=ok relay_dns=failed relay_tcp=skipped relay_udp=skipped session=failed listener=ok local_service=ok local_service=ok",
		},
		{
			"no name server any more", lastKnown, lost, auth,
			"token=ok clock=ok proxy=ok relay_dns=failed relay_tcp=ok relay_udp=skipped session=failed listener=ok local_service=ok local_service=ok",
		},
		{
			"no name server, which nobody needs", lastKnown, connected, auth,
			"token=ok clock=ok proxy=ok relay_dns=warning relay_tcp=ok relay_udp=ok session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"relay down", testWorld(map[string]error{"192.0.2.7:4433": refusal}, nil), lost, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=failed relay_udp=skipped session=failed listener=ok local_service=ok local_service=ok",
		},
		{
			"TCP blocked", testWorld(map[string]error{"192.0.2.7:4433": refusal}, nil), connected, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=warning relay_udp=ok session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"UDP blocked", testWorld(nil, nil), fallback, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=ok relay_udp=warning session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"revoked", testWorld(nil, nil), rejected, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=ok relay_udp=skipped session=failed listener=ok local_service=ok local_service=ok",
		},
		{
			"origin down", testWorld(map[string]error{"127.0.0.1:3000": refusal}, nil), connected, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=ok relay_udp=ok session=ok listener=ok local_service=failed local_service=ok",
		},
		{
			"clock of 1970", late, connected, auth,
			"token=ok clock=failed proxy=ok relay_dns=ok relay_tcp=ok relay_udp=ok session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"broken proxy", testWorld(nil, map[string]string{"HTTPS_PROXY": "http://proxy:port"}), connected, auth,
			"token=ok clock=ok proxy=warning relay_dns=ok relay_tcp=skipped relay_udp=ok session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"nothing but a proxy leads out", testWorld(
				map[string]error{"relay.example": &net.DNSError{Err: "no such host"}, "192.0.2.7:4433": refusal},
				map[string]string{"HTTPS_PROXY": "http://proxy.example:3128"}), fallback, auth,
			"token=ok clock=ok proxy=ok relay_dns=skipped relay_tcp=skipped relay_udp=warning session=ok listener=ok local_service=ok local_service=ok",
		},
		{
			"a proxy for others", testWorld(
				map[string]error{"192.0.2.7:4433": refusal},
				map[string]string{"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "relay.example"}), lost, auth,
			"token=ok clock=ok proxy=ok relay_dns=ok relay_tcp=failed relay_udp=skipped session=failed listener=ok local_service=ok local_service=ok",
		},
	} {
		f := newFakeAgent()
		checks := diagnose(t.Context(), c.world, sick{f, c.status, c.auth}, f, "127.0.0.1")
		if got := outcomes(checks); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		for _, check := range checks {
			if check.Tried == "" || check.Result == "" {
				t.Errorf("%s: %s does not say what was tried and shown: %+v", c.name, check.Name, check)
			}
			if (check.Status == diagnosis.Failed || check.Status == diagnosis.Warning) != (check.Advice != "") {
				t.Errorf("%s: %s is %s with the advice %q", c.name, check.Name, check.Status, check.Advice)
			}
		}
	}
}

func TestDiagnosisHidesTheProxysPassword(t *testing.T) {
	c := testWorld(nil, map[string]string{"HTTPS_PROXY": "proxy.example:3128"}).checkProxy("relay.example:4433")
	if c.Status != diagnosis.OK || !strings.Contains(c.Result, "http://proxy.example:3128") {
		t.Errorf("without a scheme: got %+v", c)
	}
	c = testWorld(nil, map[string]string{"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": "*"}).checkProxy("relay.example:4433")
	if c.Status != diagnosis.OK || !strings.Contains(c.Result, "NO_PROXY bypasses it") {
		t.Errorf("not for the relay: got %+v", c)
	}
	c = testWorld(nil, map[string]string{"ALL_PROXY": "socks5://user:secret@proxy.example:1080"}).checkProxy("")
	if c.Status != diagnosis.OK || strings.Contains(c.Result, "secret") || !strings.Contains(c.Result, "socks5://proxy.example:1080") {
		t.Errorf("got %+v", c)
	}
}

func TestDiagnosisTellsTunnelsApart(t *testing.T) {
	tunnels := []agent.Tunnel{
		{Name: "a", Type: "udp", LocalIP: "127.0.0.1", LocalPort: 53, State: agent.TunnelRunning},
		{Name: "b", Type: "tcp", LocalIP: "::1", LocalPort: 22, State: agent.TunnelFailed, Error: "the port is taken"},
		{Name: "c", Type: "tcp", LocalIP: "::1", LocalPort: 22, State: agent.TunnelStopped},
		{Name: "d", Type: "tcp", LocalIP: "::1", LocalPort: 22, State: agent.TunnelWaiting},
		{Name: "e", Type: "http", LocalIP: "::1", LocalPort: 80, State: agent.TunnelRunning, Paths: []definition.Path{
			{Path: "/api", LocalIP: "::1", LocalPort: 81}, {Path: "/down", LocalIP: "::1", LocalPort: 22},
		}},
		{Name: "f", Type: "http", State: agent.TunnelFailed, Paths: []definition.Path{{Path: "/api", LocalIP: "::1", LocalPort: 22}}},
	}
	w := testWorld(map[string]error{"[::1]:22": context.DeadlineExceeded}, nil)
	got := w.checkOrigins(t.Context(), tunnels)
	if want := "local_service=skipped local_service=failed local_service=failed local_service=ok local_service=ok local_service=failed local_service=failed"; outcomes(got) != want {
		t.Errorf("got %s, want %s", outcomes(got), want)
	}
	if got[2].Result != "no answer within 5s" {
		t.Errorf("got %q", got[2].Result)
	}
	if c := got[5]; c.Tried != "[::1]:22, the local service of /down of the tunnel e" ||
		c.Advice != "Start the service on [::1]:22, or change where /down leads; its visitors are turned away until then." {
		t.Errorf("got %+v", c)
	}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	w = testWorld(map[string]error{"127.0.0.1:3000": refused, "localhost:3000": refused, "127.0.0.1:22": refused, "[::1]:22": refused}, nil)
	got = w.checkOrigins(t.Context(), []agent.Tunnel{
		{Name: "g", Type: "http", LocalIP: "localhost", LocalPort: 3000, State: agent.TunnelRunning},
		{Name: "h", Type: "http", LocalIP: "127.0.0.1", LocalPort: 3000, State: agent.TunnelRunning},
		{Name: "i", Type: "http", LocalIP: "127.0.0.1", LocalPort: 22, State: agent.TunnelRunning},
	})
	if want := "local_service=ok local_service=failed local_service=failed"; outcomes(got) != want {
		t.Errorf("got %s, want %s", outcomes(got), want)
	}
	if got[1].Advice != "Something listens at [::1]:3000: use localhost instead of 127.0.0.1, which also finds it there." || !strings.HasPrefix(got[2].Advice, "Start the service") {
		t.Errorf("got %+v", got)
	}
	many := make([]agent.Tunnel, maxOrigins*2)
	if n := len(w.checkOrigins(t.Context(), many)); n != maxOrigins {
		t.Errorf("got %d checks, want %d", n, maxOrigins)
	}
}

func TestBetterChecksTakeThePlaceOfOwn(t *testing.T) {
	own := []diagnosis.Check{{Name: "a", Status: "ok"}, {Name: "b", Status: "skipped"}, {Name: "c", Status: "ok"}, {Name: "c", Status: "ok"}}
	better := []diagnosis.Check{{Name: "z", Status: "ok"}, {Name: "b", Status: "failed"}, {Name: "b", Status: "ok"}}
	if got, want := outcomes(mergeChecks(own, better)), "a=ok b=failed b=ok c=ok c=ok z=ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := outcomes(mergeChecks(own, []diagnosis.Check{{Name: "c", Status: "failed"}})), "a=ok b=skipped c=failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := outcomes(mergeChecks(own, nil)); got != outcomes(own) {
		t.Errorf("got %s, want %s", got, outcomes(own))
	}
}

func TestReasonsAreShort(t *testing.T) {
	for want, err := range map[string]error{
		"no answer within 5s":        fmt.Errorf("dial: %w", context.DeadlineExceeded),
		"server has not answered":    &net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true},
		"no such host":               &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x"}},
		"strange":                    errors.New("strange"),
		syscall.ECONNREFUSED.Error(): &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
	} {
		if got := reason(err); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDiagnoseSaysThatNothingListens(t *testing.T) {
	addr := "192.0.2.7:4433" // where the name of newFakeAgent's relay leads
	for _, c := range []struct {
		err  error
		want string
	}{
		{os.NewSyscallError("connect", syscall.ECONNREFUSED), "Nothing listens there"},
		{context.DeadlineExceeded, "through the firewall"},
	} {
		w := testWorld(map[string]error{addr: c.err}, nil)
		checks := w.checkRelay(t.Context(), agent.Status{Relay: addr})
		if got := checks[1]; got.Name != "relay_tcp" || !strings.Contains(got.Advice, c.want) {
			t.Errorf("%v: got %+v, want the advice %q", c.err, got, c.want)
		}
	}
}

func TestSlowRoundTripIsWrittenOut(t *testing.T) {
	c := checkSession(agent.Status{State: agent.StateConnected, Transport: "dtls", RTTMillis: 1234.5})
	if want := "connected over DTLS, round trip 1234.5 ms"; c.Result != want {
		t.Errorf("got %q, want %q", c.Result, want)
	}
}
