package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"
)

// DialConfig says which relay to dial and how.
type DialConfig struct {
	// Relay is the relay's address, host:port. A name is looked up anew at
	// each Dial, and all of its addresses are tried.
	Relay string
	// Fingerprint is of the authority to trust: Authority.Fingerprint.
	Fingerprint [32]byte
	// Transport forces one. If Auto, DTLS begins and TLS joins the race.
	Transport Transport
	// KeepAlive is the interval of pings on an idle session. If zero, one that
	// suits the transport.
	KeepAlive time.Duration
	// MaxStreams is how many streams may be open in each direction. If zero, 16,384.
	MaxStreams int
	// Proxy names the proxy for TLS to addr (host:port); nil without error
	// means none. If Proxy is nil, EnvironmentProxy.
	Proxy func(addr string) (*url.URL, error)
	// Resolver looks names up. If nil, net.DefaultResolver.
	Resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	// ListenPacket opens the socket of DTLS towards relay, and again when the
	// network changes. If nil, a UDP socket of the system.
	ListenPacket func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error)
	// DialContext opens the connection of TLS. If nil, net.Dialer's.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger may be nil.
	Logger *slog.Logger
}

func (c *DialConfig) withDefaults() *DialConfig {
	cfg := *c
	if cfg.Proxy == nil {
		cfg.Proxy = EnvironmentProxy
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.DialContext == nil {
		cfg.DialContext = (&net.Dialer{Timeout: handshakeTimeout}).DialContext
	}
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

// Dial makes a session with the relay. An error matches ErrUntrusted if the
// relay answered and is not the one to trust.
func Dial(ctx context.Context, config DialConfig) (Session, error) {
	cfg := config.withDefaults()
	if _, _, err := net.SplitHostPort(cfg.Relay); err != nil {
		return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
	}
	switch cfg.Transport {
	case Auto, TLS:
		return dialTLS(ctx, cfg)
	}
	return nil, fmt.Errorf("dial relay %s: there is no transport %q", cfg.Relay, cfg.Transport)
}

// lookup returns the relay's addresses, IPv6 and IPv4 in turn.
func lookup(ctx context.Context, cfg *DialConfig) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(cfg.Relay)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	var ips []netip.Addr
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = []netip.Addr{ip}
	} else if ips, err = cfg.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
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
		return nil, fmt.Errorf("look up %s: it has no address", host)
	}
	return both[:min(len(both), maxAddresses)], nil
}

// maxAddresses is how many addresses of a name are tried.
const maxAddresses = 8

// attemptDelay is how long an attempt has before the next address is tried
// beside it (RFC 8305 §5).
const attemptDelay = 250 * time.Millisecond

// race runs the attempts, each begun when the one before it has failed or its
// delay is over, and returns the first session; the others are closed.
func race(ctx context.Context, attempts []attempt) (Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		session Session
		err     error
	}
	results := make(chan result, len(attempts))
	var errs []error
	next, running := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if next == len(attempts) {
				continue
			}
			a := attempts[next]
			next++
			running++
			go func() {
				session, err := a.dial(ctx)
				results <- result{session, err}
			}()
			if next < len(attempts) {
				timer.Reset(attempts[next].after)
			}
		case r := <-results:
			running--
			if r.err == nil {
				cancel()
				for ; running > 0; running-- {
					if r := <-results; r.session != nil {
						r.session.Close("another attempt was faster")
					}
				}
				return r.session, nil
			}
			errs = append(errs, r.err)
			if next < len(attempts) && !attempts[next].patient {
				timer.Reset(0)
			} else if running == 0 && next < len(attempts) {
				timer.Reset(0)
			} else if running == 0 {
				return nil, errors.Join(errs...)
			}
		}
	}
}

// attempt is one way to a session.
type attempt struct {
	after   time.Duration // after the attempt before it
	patient bool          // not begun sooner because one before it failed, if others still run
	dial    func(context.Context) (Session, error)
}

// dialTLS goes through the proxy, which looks the name up itself, or tries
// every address.
func dialTLS(ctx context.Context, cfg *DialConfig) (Session, error) {
	attempts, err := tlsAttempts(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
	}
	return race(ctx, attempts)
}

func tlsAttempts(ctx context.Context, cfg *DialConfig) ([]attempt, error) {
	via, err := cfg.Proxy(cfg.Relay)
	if err != nil {
		return nil, fmt.Errorf("find the proxy: %w", err)
	}
	if via != nil {
		return []attempt{{dial: func(ctx context.Context) (Session, error) {
			limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
			defer cancel()
			conn, err := proxyDial(limited, cfg.DialContext, via, cfg.Relay)
			if err != nil {
				return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
			}
			return tlsClient(ctx, conn, cfg)
		}}}, nil
	}
	addrs, err := lookup(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var attempts []attempt
	for _, addr := range addrs {
		attempts = append(attempts, attempt{after: attemptDelay, dial: func(ctx context.Context) (Session, error) {
			conn, err := cfg.DialContext(ctx, "tcp", addr.String())
			if err != nil {
				return nil, fmt.Errorf("dial relay %s over TLS: %w", cfg.Relay, err)
			}
			return tlsClient(ctx, conn, cfg)
		}})
	}
	return attempts, nil
}
