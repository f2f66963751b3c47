package relay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"

	"adit/internal/socketerr"
	"adit/tunnel/link"
	"adit/tunnel/link/farewell"
	"adit/tunnel/relay/sentence"
)

// agentStreams is how many streams an agent, or a stranger before its hello, may open.
// These are for the control plane only. Streams for visitors are opened here.
const agentStreams = 1024

// sockets are what visitors and agents connect to.
type sockets struct {
	plain, secure net.Listener   // for HTTP and HTTPS
	quic          net.PacketConn // for HTTP/3; nil if not used
	agents        *link.Listener
	handOver      func(net.Conn) // gives agents' connections at secure to agents; nil if agents have only ports of their own
}

func (s *sockets) close() {
	if s.agents != nil {
		s.agents.Close()
	}
	for _, ln := range []net.Listener{s.plain, s.secure} {
		if ln != nil {
			ln.Close()
		}
	}
	if s.quic != nil {
		s.quic.Close()
	}
}

// openSockets opens the public sockets. At the visitors' port, agents are recognised over
// TCP by the protocol that they offer (ALPN). Over UDP, if tunnel_listen and
// edge_https_listen are the same, they are recognised by the first byte (RFC 9443).
func (r *Relay) openSockets() (s *sockets, err error) {
	s = &sockets{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.plain, err = listen("edge_http_listen", r.cfg.EdgeHTTPListen); err != nil {
		return s, err
	}
	conf := link.ListenConfig{
		Addr: r.cfg.TunnelListen, GetCertificate: r.shown.get, PeerStreams: agentStreams, Memory: r.waiting, Logger: r.log,
		Farewells:   filepath.Join(r.cfg.DataDir, farewell.File),
		MaxSessions: r.cfg.Limits.Sessions + 2*maxStrangers, // strangers, including those that are ending, take no places from agents
	}
	shared := r.cfg.SharesPort()
	if shared || !r.cfg.HTTP3 {
		s.secure, err = listen("edge_https_listen", r.cfg.EdgeHTTPSListen)
	} else {
		s.secure, s.quic, err = listenBoth("edge_https_listen", r.cfg.EdgeHTTPSListen)
	}
	if err != nil {
		return s, err
	}
	l := &agentListener{Listener: s.secure, conns: make(chan net.Conn), closed: make(chan struct{})}
	if shared || r.cfg.AgentsByHTTPS {
		s.handOver = l.give
	}
	if !shared && r.cfg.AgentsByHTTPS {
		conf.More = l
	}
	if shared {
		conf.TCP, conf.Shared = l, r.cfg.HTTP3
		if conf.PacketConn, err = net.ListenPacket("udp", s.secure.Addr().String()); err != nil {
			return s, sentence.Listen("tunnel_listen", conf.Addr, err)
		}
	}
	if s.agents, err = link.Listen(conf); err != nil {
		return s, sentence.Listen("tunnel_listen", conf.Addr, err)
	}
	if shared && r.cfg.HTTP3 {
		s.quic = s.agents.Shared()
	}
	return s, nil
}

// listenBoth opens a port for TCP and UDP. Port 0 means one that is free for both.
func listenBoth(key, addr string) (net.Listener, net.PacketConn, error) {
	_, port, _ := net.SplitHostPort(addr)
	for try := 0; ; try++ {
		tcp, err := listen(key, addr)
		if err != nil {
			return nil, nil, err
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err == nil {
			return tcp, udp, nil
		}
		tcp.Close()
		if port != "0" || try == 20 {
			if errors.Is(err, socketerr.InUse) {
				return nil, nil, sentence.New(fmt.Sprintf("%s: another program has UDP %s; end it, set another %s, or leave HTTP/3 out with http3 = false", key, addr, key), err)
			}
			return nil, nil, sentence.Listen(key, addr, err)
		}
	}
}

var errNoAgents = errors.New("no agents are taken any more")

// agentListener accepts the agents' connections among those of the visitors' listener.
// Closing it does not close the visitors' listener.
type agentListener struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *agentListener) give(conn net.Conn) {
	select {
	case l.conns <- conn:
	case <-l.closed:
		conn.Close()
	}
}

func (l *agentListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, fmt.Errorf("%w: %w", errNoAgents, net.ErrClosed)
	}
}

func (l *agentListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func listen(key, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, sentence.Listen(key, addr, err)
	}
	return ln, nil
}

func portOf(a net.Addr) int {
	ap, _ := netip.ParseAddrPort(a.String())
	return int(ap.Port())
}

// publicPort returns the port at which others reach what listens at a.
func publicPort(set int, a net.Addr) int {
	if set != 0 {
		return set
	}
	return portOf(a)
}
