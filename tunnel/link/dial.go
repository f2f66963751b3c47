package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lookup"
)

// DialConfig says which relay to dial and how.
type DialConfig struct {
	// Relay is the relay's address, host:port. Each Dial looks a name up again and tries all of its
	// addresses; if the lookup fails, it tries the last ones known.
	Relay string
	// Fingerprint identifies the authority to trust, as returned by Authority.Fingerprint.
	Fingerprint [32]byte
	// Certificate proves who dials to another relay node, over TLS. It is made by
	// Authority.IssueNode; agents have none.
	Certificate *tls.Certificate
	// Transport forces one transport. With Auto, DTLS starts and TLS joins the race.
	Transport Transport
	// Detour lets the records of a DTLS session travel over TLS while UDP does not get through,
	// without ending its streams. With Auto, this is always allowed.
	Detour bool
	// KeepAlive is the interval between pings on an idle session. If zero, one that suits the
	// transport.
	KeepAlive time.Duration
	// MaxStreams is how many streams may be open in each direction. If zero, 16,384.
	MaxStreams int
	// Memory bounds the received data that waits for readers, in bytes. If zero, 64 MiB; the
	// minimum is 4 MiB.
	Memory int64
	// Proxy returns the proxy for TLS connections to addr (host:port), or nil for none. If Proxy is
	// nil, EnvironmentProxy is used.
	Proxy func(addr string) (*url.URL, error)
	// Resolver looks names up. It may return both addresses and an error: the last known addresses,
	// and the reason why there are no current ones. If nil, a lookup.Resolver shared by all
	// sessions.
	Resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	// ListenPacket opens the DTLS socket towards relay, and again when the network changes. If nil,
	// a UDP socket of the system.
	ListenPacket func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error)
	// DialContext opens the TLS connection. If nil, that of net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// NoOffload disables the use of the kernel's segmentation offloads.
	NoOffload bool
	// NoWatch ignores changes of this machine's network. A DTLS session then moves to another
	// socket only if its peer is silent.
	NoWatch bool
	// Logger may be nil.
	Logger *slog.Logger

	ownSocket bool // ListenPacket is listenUDP
}

// names remembers the results of looking up relays' names.
var names lookup.Resolver

// LookUp returns the addresses of a relay's name as Dial finds them. If the lookup fails, it
// returns the last known addresses together with the error.
func LookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	return names.LookupNetIP(ctx, "ip", host)
}

func (c *DialConfig) withDefaults() *DialConfig {
	cfg := *c
	if cfg.Proxy == nil {
		cfg.Proxy = EnvironmentProxy
	}
	if cfg.Resolver == nil {
		cfg.Resolver = &names
	}
	if cfg.ListenPacket == nil {
		cfg.ListenPacket = listenUDP
		cfg.ownSocket = true
	}
	if cfg.DialContext == nil {
		cfg.DialContext = (&net.Dialer{Timeout: handshakeTimeout}).DialContext
	}
	cfg.Memory = max(cmp.Or(cfg.Memory, mostOfSession), freeOfSession)
	cfg.Detour = cfg.Detour || cfg.Transport == Auto
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &cfg
}

func allProxy() string {
	if all := os.Getenv("ALL_PROXY"); all != "" {
		return all
	}
	return os.Getenv("all_proxy")
}

// listenUDP opens a socket of the relay's address family. It is bound to no address, so the
// system's routes decide the source address of each packet.
func listenUDP(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
	network := "udp6"
	if relay.Addr().Is4() {
		network = "udp4"
	}
	return new(net.ListenConfig).ListenPacket(ctx, network, ":0")
}

// Dial makes a session with the relay. The error matches ErrUntrusted if the relay answered but is
// not the one to trust.
//
// With Auto, a session over TLS means that UDP was blocked or slow. That may change: callers should
// dial again with DTLS now and then, at intervals from 5 s to 60 s, and move new streams to the
// session that results.
func Dial(ctx context.Context, config DialConfig) (Session, error) {
	cfg := config.withDefaults()
	if _, _, err := net.SplitHostPort(cfg.Relay); err != nil {
		return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
	}
	switch cfg.Transport {
	case Auto:
		return dialAuto(ctx, cfg)
	case DTLS:
		return dialDTLS(ctx, cfg, nil)
	case TLS:
		return dialTCP(ctx, cfg)
	}
	return nil, fmt.Errorf("dial relay %s: there is no transport %q", cfg.Relay, cfg.Transport)
}

// tlsDelay is how long DTLS runs alone before TLS joins.
const tlsDelay = 700 * time.Millisecond

// dialAuto starts with DTLS. TLS joins once tlsDelay has passed, DTLS has failed, or the network
// reports that it cannot work.
func dialAuto(ctx context.Context, cfg *DialConfig) (Session, error) {
	refused := make(chan struct{})
	failed := make(chan struct{})
	return race(ctx, []attempt{
		{dial: func(ctx context.Context) (Session, error) {
			s, err := dialDTLS(ctx, cfg, refused)
			if err != nil {
				close(failed)
			}
			return s, err
		}},
		{dial: func(ctx context.Context) (Session, error) {
			timer := time.NewTimer(tlsDelay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-refused:
			case <-failed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return dialTCP(ctx, cfg)
		}},
	}, nil)
}

// dialDTLS tries every address, and closes refused once all of them have refused UDP outright.
func dialDTLS(ctx context.Context, cfg *DialConfig, refused chan<- struct{}) (Session, error) {
	addrs, unsure, err := addresses(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("dial relay %s over DTLS: %w", cfg.Relay, err)
	}
	var attempts []attempt
	for _, addr := range addrs {
		attempts = append(attempts, attempt{after: attemptDelay, dial: func(ctx context.Context) (Session, error) {
			return dtlsClient(ctx, addr, cfg)
		}})
	}
	if refused == nil || !cfg.ownSocket {
		return race(ctx, attempts, unsure)
	}
	ctx, cancel := context.WithCancel(ctx)
	var probes, all sync.WaitGroup
	open := make(chan struct{}, len(addrs)) // of the addresses that did not refuse
	for _, addr := range addrs {
		probes.Go(func() {
			if !refusesUDP(ctx, addr) {
				open <- struct{}{}
			}
		})
	}
	all.Go(func() {
		probes.Wait()
		if len(open) == 0 {
			close(refused)
		}
	})
	defer all.Wait()
	defer cancel()
	return race(ctx, attempts, unsure)
}

// strayAlert is a record (RFC 6347 §4.1) of epoch 0 with the warning close_notify.
var strayAlert = []byte{21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0}

// refusesUDP reports whether the network answers a datagram to addr by saying that it cannot be
// delivered; the system passes this on to connected sockets only. The datagram is a DTLS record for
// a session that does not exist, which the relay drops, so that nothing but DTLS is ever seen on
// the tunnel's path.
func refusesUDP(ctx context.Context, addr netip.AddrPort) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", addr.String())
	if err != nil {
		return ctx.Err() == nil
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(tlsDelay))
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(strayAlert); err != nil {
		return ctx.Err() == nil
	}
	_, err = conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// addresses returns the relay's addresses, alternating between IPv6 and IPv4. If they are the last
// known ones of its name, unsure says why there are no current ones.
func addresses(ctx context.Context, cfg *DialConfig) (_ []netip.AddrPort, unsure, err error) {
	host, service, err := net.SplitHostPort(cfg.Relay)
	if err != nil {
		return nil, nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, nil, err
	}
	var ips []netip.Addr
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = []netip.Addr{ip}
	} else if ips, err = cfg.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		unsure = fmt.Errorf("look up %s: %w", host, err)
		if len(ips) == 0 {
			return nil, nil, unsure
		}
		cfg.Logger.Debug("a relay's name has no address now, those of before are tried", "relay", cfg.Relay, "error", err)
	}
	var six, four, both []netip.AddrPort
	for _, ip := range ips {
		ip = ip.Unmap()
		if ip.Is4() {
			four = append(four, netip.AddrPortFrom(ip, uint16(port)))
		} else {
			six = append(six, netip.AddrPortFrom(ip, uint16(port)))
		}
	}
	for i := 0; i < len(six) || i < len(four); i++ {
		if i < len(six) {
			both = append(both, six[i])
		}
		if i < len(four) {
			both = append(both, four[i])
		}
	}
	if len(both) == 0 {
		return nil, nil, fmt.Errorf("look up %s: it has no address", host)
	}
	return both[:min(len(both), maxAddresses)], unsure, nil
}

// WebPort is a port on which a relay accepts agents too, unless told not to: many networks let
// nothing else out, and many proxies connect to no other port. Dial tries it over TLS if it cannot
// reach the relay on its own port.
const WebPort = "443"

const (
	// webDelay is how long the relay's own port is tried alone, and how much longer if somebody
	// answers there: a busy relay should not be asked twice in quick succession.
	webDelay = 2 * time.Second
	// webTime bounds the attempt at WebPort. If nothing is there, as behind many firewalls, a relay
	// that is merely down should be tried again soon.
	webTime = 4 * time.Second
)

// dialTCP makes a session over TLS at the relay's own port or, if that does not succeed in time, at
// WebPort.
func dialTCP(ctx context.Context, cfg *DialConfig) (Session, error) {
	host, port, err := net.SplitHostPort(cfg.Relay)
	if err != nil || port == WebPort || cfg.Certificate != nil { // a node dials nodes, who have no other port
		return dialTLS(ctx, cfg)
	}
	own, web := *cfg, *cfg
	var answered atomic.Bool
	own.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := cfg.DialContext(ctx, network, addr)
		if err == nil {
			answered.Store(true)
		}
		return conn, err
	}
	web.Relay = net.JoinHostPort(host, WebPort)
	failed := make(chan struct{})
	return race(ctx, []attempt{
		{dial: func(ctx context.Context) (Session, error) {
			s, err := dialTLS(ctx, &own)
			if err != nil {
				close(failed)
			}
			return s, err
		}},
		{after: webDelay, dial: func(ctx context.Context) (Session, error) {
			if answered.Load() {
				timer := time.NewTimer(webDelay)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-failed:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return dialWeb(ctx, &web)
		}},
	}, nil)
}

// dialWeb makes a session at WebPort. Its errors carry no types, only text: whoever owns that port
// may have nothing to do with the relay.
func dialWeb(ctx context.Context, cfg *DialConfig) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, webTime)
	defer cancel()
	s, err := dialTLS(ctx, cfg)
	if err != nil {
		return nil, errors.New("at port " + WebPort + ", " + err.Error())
	}
	return s, nil
}

// dialTLS goes through the proxy, which looks the name up itself, or else tries every address.
func dialTLS(ctx context.Context, cfg *DialConfig) (Session, error) {
	attempts, unsure, err := tlsAttempts(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
	}
	return race(ctx, attempts, unsure)
}

func tlsAttempts(ctx context.Context, cfg *DialConfig) (_ []attempt, unsure, err error) {
	via, err := cfg.Proxy(cfg.Relay)
	if err != nil {
		return nil, nil, err
	}
	if via != nil {
		return []attempt{{dial: func(ctx context.Context) (Session, error) {
			limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
			defer cancel()
			conn, err := proxyDial(limited, cfg.DialContext, via, cfg.Relay)
			if err != nil {
				return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
			}
			return tlsSessionOver(ctx, conn, cfg)
		}}}, nil, nil
	}
	addrs, unsure, err := addresses(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	var attempts []attempt
	for _, addr := range addrs {
		attempts = append(attempts, attempt{after: attemptDelay, dial: func(ctx context.Context) (Session, error) {
			conn, err := cfg.DialContext(ctx, "tcp", addr.String())
			if err != nil {
				return nil, fmt.Errorf("dial relay %s over TLS: %w", cfg.Relay, err)
			}
			return tlsSessionOver(ctx, conn, cfg)
		}})
	}
	return attempts, unsure, nil
}
