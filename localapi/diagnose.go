package localapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/internal/buildinfo"
	"adit/internal/socketerr"
	"adit/tunnel/agent"
	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Limits of a diagnosis.
const (
	diagnoseTimeout = 25 * time.Second
	speedTimeout    = 40 * time.Second // of two transports, and what one takes to be tried
	checkTimeout    = 5 * time.Second
	checksAtOnce    = 8
	maxOrigins      = 50 // local services that are tried
)

// world is what a diagnosis uses besides the agent.
type world struct {
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	lookup func(ctx context.Context, host string) ([]netip.Addr, error) // as link.LookUp
	getenv func(string) string
	proxy  func(addr string) (*url.URL, error) // that leads to a relay over TLS; nil: none does
	now    func() time.Time
}

func realWorld() world {
	return world{
		dial:   new(net.Dialer).DialContext,
		lookup: link.LookUp,
		getenv: os.Getenv,
		proxy:  link.EnvironmentProxy,
		now:    time.Now,
	}
}

func (s *Server) runDiagnostics(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), diagnoseTimeout)
	defer cancel()
	listen := ""
	if local, ok := localAddr(r); ok {
		listen = local.String()
	}
	var own, agents, daemons []diagnosis.Check
	var group sync.WaitGroup
	group.Go(func() { own = diagnose(ctx, realWorld(), s.cfg.Agent, s.cfg.Agent, listen) })
	group.Go(func() { agents = s.cfg.Agent.Diagnose(ctx) })
	if s.cfg.Checks != nil {
		group.Go(func() { daemons = s.cfg.Checks(ctx) })
	}
	group.Wait()
	return writeItems(w, mergeChecks(own, append(agents, daemons...)))
}

func (s *Server) measureSpeed(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), speedTimeout)
	defer cancel()
	speeds, err := s.cfg.Agent.MeasureSpeed(ctx)
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, speeds)
}

// mergeChecks replaces own checks with better ones of the same name.
func mergeChecks(own, better []diagnosis.Check) []diagnosis.Check {
	var order []string
	byName := make(map[string][]diagnosis.Check)
	for i, list := range [][]diagnosis.Check{own, better} {
		fresh := make(map[string]bool) // names met in this list
		for _, c := range list {
			if _, known := byName[c.Name]; !known {
				order = append(order, c.Name)
			} else if i == 1 && !fresh[c.Name] {
				byName[c.Name] = nil
			}
			fresh[c.Name] = true
			byName[c.Name] = append(byName[c.Name], c)
		}
	}
	var all []diagnosis.Check
	for _, name := range order {
		all = append(all, byName[name]...)
	}
	return all
}

// diagnose checks what can be seen from outside the agent, ordered so that each check comes after
// those it depends on.
func diagnose(ctx context.Context, w world, st interface {
	StatusTeller
	Auth() agent.AuthStatus
}, tunnels TunnelLister, listen string,
) []diagnosis.Check {
	status, auth := st.Status(), st.Auth()
	checks := []diagnosis.Check{checkToken(auth), w.checkClock(), w.checkProxy(status.Relay)}
	checks = append(checks, w.checkRelay(ctx, status)...)
	checks = append(checks, checkSession(status))
	checks = append(checks, checkListener(listen))
	return append(checks, w.checkOrigins(ctx, tunnels.Tunnels())...)
}

func checkToken(auth agent.AuthStatus) diagnosis.Check {
	c := diagnosis.Check{Name: "token", Tried: "the auth token", Status: diagnosis.OK}
	switch {
	case !auth.Configured:
		c.Status, c.Result = diagnosis.Failed, "none is configured"
		c.Advice = "Get a token from the relay's operator and run `adit login TOKEN`, or paste it into the Web UI."
	default:
		c.Result = fmt.Sprintf("%s, for the relay %s", auth.TokenHint, auth.Relay)
	}
	return c
}

// checkClock compares the clock with a time that is certainly past.
func (w world) checkClock() diagnosis.Check {
	now := w.now()
	c := diagnosis.Check{Name: "clock", Tried: "this machine's clock", Status: diagnosis.OK, Result: now.UTC().Format(time.RFC3339)}
	built, err := time.Parse(time.RFC3339, buildinfo.Get().Date)
	if err != nil {
		built = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if now.Before(built.Add(-24 * time.Hour)) {
		c.Status = diagnosis.Failed
		c.Result += ", which is earlier than this version of adit"
		c.Advice = "Set the clock, preferably with NTP: adit needs it to check certificates."
	}
	return c
}

// checkProxy reports the proxy on the way to a relay, without its password.
func (w world) checkProxy(relay string) diagnosis.Check {
	c := diagnosis.Check{Name: "proxy", Tried: "HTTPS_PROXY and ALL_PROXY", Status: diagnosis.OK, Result: "none is set"}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		value := w.getenv(name)
		if value == "" {
			continue
		}
		u, err := link.ParseProxy(value)
		if err != nil {
			c.Status, c.Result = diagnosis.Warning, name+" is not set to a valid address"
			c.Advice = "Set it to an address such as http://proxy.example:3128, or unset it."
			return c
		}
		c.Result = fmt.Sprintf("%s is %s://%s; TLS goes through it, UDP does not", name, u.Scheme, u.Host)
		if via, err := w.proxy(relay); relay != "" && err == nil && via == nil {
			c.Result = fmt.Sprintf("%s is %s://%s; NO_PROXY bypasses it for the relay", name, u.Scheme, u.Host)
		}
		return c
	}
	return c
}

// checkRelay tries the path to the relay: its name, then TCP. Whether UDP gets through, it reads
// off the session.
func (w world) checkRelay(ctx context.Context, st agent.Status) []diagnosis.Check {
	dns := diagnosis.Check{Name: "relay_dns", Tried: "the address of the relay", Status: diagnosis.Skipped, Result: "no relay is known yet"}
	tcp := diagnosis.Check{Name: "relay_tcp", Tried: "TCP to the relay", Status: diagnosis.Skipped, Result: "no relay is known yet"}
	udp := diagnosis.Check{Name: "relay_udp", Tried: "UDP to the relay", Status: diagnosis.Skipped, Result: "there is no session to judge it by"}
	host, port, err := net.SplitHostPort(st.Relay)
	if err != nil {
		return []diagnosis.Check{dns, tcp, udp}
	}
	dns.Tried = "the address of " + host
	tcp.Tried = "TCP to " + st.Relay
	udp.Tried = "UDP to " + st.Relay
	ctx, cancel := context.WithTimeout(ctx, 2*checkTimeout)
	defer cancel()
	addrs, err := w.lookup(ctx, host)
	found := addressList(addrs)
	if via, no := w.proxy(st.Relay); no != nil || via != nil { // which TLS needs, and nothing else
		dns.Status, dns.Result = diagnosis.OK, found
		if err != nil {
			dns.Status, dns.Result = diagnosis.Skipped, "the proxy looks it up for TLS; this machine cannot: "+reason(err)
		}
		tcp.Result = "TLS goes through the proxy"
		return []diagnosis.Check{dns, tcp, checkUDP(udp, st)}
	}
	if err != nil {
		dns.Status, dns.Result = diagnosis.Failed, reason(err)
		dns.Advice = "Check this machine's network and DNS server; if both work, ask the relay's operator for its name."
		if len(addrs) == 0 {
			tcp.Result = "the relay's address is not known"
			return []diagnosis.Check{dns, tcp, udp}
		}
		dns.Result += ", so adit uses the addresses it found before: " + found
		if st.Connected {
			dns.Status = diagnosis.Warning
			dns.Advice = "Check this machine's DNS server. The session does not need it until the relay moves."
		}
	} else {
		dns.Status, dns.Result = diagnosis.OK, found
	}
	conn, err := w.dialRelay(ctx, addrs, port)
	if err != nil {
		tcp.Status, tcp.Result = diagnosis.Warning, reason(err)
		tcp.Advice = "If UDP is blocked, adit needs TCP to this port: allow it through the firewall, and check that the relay is running."
		if errors.Is(err, socketerr.Refused) {
			tcp.Advice = "Nothing listens there: check whether the relay is running; if it has moved, ask its operator for a new token."
		}
		if !st.Connected {
			tcp.Status = diagnosis.Failed
		}
	} else {
		conn.Close()
		tcp.Status, tcp.Result = diagnosis.OK, "the relay accepts connections"
	}
	return []diagnosis.Check{dns, tcp, checkUDP(udp, st)}
}

func addressList(addrs []netip.Addr) string {
	var list []string
	for _, a := range addrs {
		list = append(list, a.Unmap().String())
	}
	return strings.Join(list, ", ")
}

// dialRelay connects to the first of the relay's addresses that works. Its error is that of the
// first address.
func (w world) dialRelay(ctx context.Context, addrs []netip.Addr, port string) (conn net.Conn, err error) {
	for _, a := range addrs {
		each, cancel := context.WithTimeout(ctx, checkTimeout)
		c, failed := w.dial(each, "tcp", net.JoinHostPort(a.Unmap().String(), port))
		cancel()
		if failed == nil {
			return c, nil
		}
		err = cmp.Or(err, failed)
	}
	return nil, err
}

// checkUDP tells from the session whether UDP gets through.
func checkUDP(udp diagnosis.Check, st agent.Status) diagnosis.Check {
	switch {
	case st.Connected && st.Transport == "dtls":
		udp.Status, udp.Result = diagnosis.OK, "the session runs over it"
	case st.Connected && st.Transport == "tls":
		udp.Status, udp.Result = diagnosis.Warning, "the session runs over TCP, which is slower on bad networks"
		udp.Advice = "Allow UDP to this port through the firewall; the session then switches to UDP automatically."
	}
	return udp
}

func checkSession(st agent.Status) diagnosis.Check {
	c := diagnosis.Check{Name: "session", Tried: "the session with the relay", Status: diagnosis.Failed, Result: st.State}
	if st.LastError != "" {
		c.Result += ": " + st.LastError
	}
	switch st.State {
	case agent.StateConnected:
		c.Status = diagnosis.OK
		c.Result = fmt.Sprintf("connected over %s, round trip %.1f ms", strings.ToUpper(st.Transport), st.RTTMillis)
	case agent.StateUnconfigured:
		c.Status = diagnosis.Skipped
	case agent.StatePaused:
		c.Status = diagnosis.Warning
		c.Advice = "Run `adit resume`."
	case agent.StateRejected:
		c.Advice = "Ask the relay's operator for a new token and run `adit login TOKEN`."
	default:
		c.Advice = "adit retries automatically; the checks above show what is wrong."
	}
	return c
}

func checkListener(listen string) diagnosis.Check {
	c := diagnosis.Check{Name: "listener", Tried: "the local API", Status: diagnosis.OK, Result: "it answers"}
	if listen != "" {
		c.Result = "it answers at " + listen
	}
	return c
}

// origin is a local service of a tunnel.
type origin struct {
	tunnel agent.Tunnel
	addr   string
	path   string // whose it is; empty: the tunnel's own
}

// checkOrigins tries the local services of all tunnels that should be working.
func (w world) checkOrigins(ctx context.Context, tunnels []agent.Tunnel) []diagnosis.Check {
	var wanted []origin
	for _, t := range tunnels {
		if t.State == agent.TunnelStopped {
			continue
		}
		wanted = append(wanted, origin{tunnel: t, addr: net.JoinHostPort(t.LocalIP, strconv.Itoa(t.LocalPort))})
		for _, p := range t.Paths {
			if t.State != agent.TunnelFailed { // it is the tunnel's own that says so
				wanted = append(wanted, origin{tunnel: t, addr: net.JoinHostPort(p.LocalIP, strconv.Itoa(p.LocalPort)), path: p.Path})
			}
		}
	}
	wanted = wanted[:min(len(wanted), maxOrigins)]
	checks := make([]diagnosis.Check, len(wanted))
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for i, o := range wanted {
		group.Go(func() error {
			checks[i] = w.checkOrigin(ctx, o)
			return nil
		})
	}
	_ = group.Wait() // no check returns an error
	return checks
}

func (w world) checkOrigin(ctx context.Context, o origin) diagnosis.Check {
	t, addr := o.tunnel, o.addr
	c := diagnosis.Check{Name: "local_service", Tried: fmt.Sprintf("%s, the local service of the tunnel %s", addr, t.Name), Status: diagnosis.OK}
	if o.path != "" {
		c.Tried = fmt.Sprintf("%s, the local service of %s of the tunnel %s", addr, o.path, t.Name)
	}
	if t.State == agent.TunnelFailed {
		c.Status, c.Result = diagnosis.Failed, "the tunnel failed: "+t.Error
		c.Advice = "Change the tunnel to fix this error, or delete it."
		return c
	}
	if t.Type == wire.TypeUDP {
		c.Status, c.Result = diagnosis.Skipped, "a UDP service does not show whether it is running"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conn, err := w.dialService(ctx, addr)
	if err != nil {
		c.Status, c.Result = diagnosis.Failed, reason(err)
		if other := w.onlyIPv6(ctx, addr); other != "" && errors.Is(err, socketerr.Refused) {
			c.Advice = "Something listens at " + other + ": use localhost instead of 127.0.0.1, which also finds it there."
			return c
		}
		c.Advice = "Start the service on " + addr + ", or change the tunnel's local address; visitors are turned away until then."
		if o.path != "" {
			c.Advice = "Start the service on " + addr + ", or change where " + o.path + " leads; its visitors are turned away until then."
		}
		return c
	}
	conn.Close()
	c.Result = "it accepts connections"
	return c
}

// dialService connects to a local service as tunnels do: localhost stands for both loopback
// addresses.
func (w world) dialService(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := w.dial(ctx, "tcp", addr)
	port, named := strings.CutPrefix(addr, "localhost:")
	if err == nil || !named {
		return conn, err
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		if conn, err := w.dial(ctx, "tcp", net.JoinHostPort(ip, port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// onlyIPv6 returns the address on which something listens at ::1 instead of 127.0.0.1; empty if
// nothing does.
func (w world) onlyIPv6(ctx context.Context, addr string) string {
	port, ok := strings.CutPrefix(addr, "127.0.0.1:")
	if !ok {
		return ""
	}
	other := net.JoinHostPort("::1", port)
	conn, err := w.dial(ctx, "tcp", other)
	if err != nil {
		return ""
	}
	conn.Close()
	return other
}

// reason returns the part of a network error that says what happened.
func reason(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsTimeout {
		return "the name server has not answered"
	}
	if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
		return "no answer within " + checkTimeout.String()
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		var call *os.SyscallError
		if errors.As(op.Err, &call) {
			return call.Err.Error()
		}
		return op.Err.Error()
	}
	if dns != nil {
		return dns.Err
	}
	return err.Error()
}
