// Package bare is the floor of the benchmark: the way from visitors over a
// relay and an agent to an origin, with nothing on it but that way. Relay and
// agent copy bytes and datagrams over one link, a TCP connection or a UDP
// socket; there is no encryption, no authentication, no limit, no log, and no
// flow control but that of the sockets, so that a visitor who does not read
// stops all others. Over UDP nothing is sent twice: small requests and
// datagrams come through as long as the sockets have room for them, bulk does
// not. An agent hears of a visitor with the first bytes, so that no origin can
// speak first.
package bare

import (
	"context"
	"net"

	"adit/internal/sockio"
	"adit/internal/udpbatch"
)

// Addrs are where something listens: TCP and UDP of visitors or of an origin,
// and Agent for the link, at a relay.
type Addrs struct {
	TCP   string `json:"tcp"`
	UDP   string `json:"udp"`
	Agent string `json:"agent,omitempty"`
}

// Relay is what visitors and the agent come to.
type Relay struct {
	visitors  *net.TCPListener
	datagrams *net.UDPConn
	tcp       *net.TCPListener // of the agent; nil if the link is UDP
	udp       *net.UDPConn
}

// Listen returns a relay that listens on loopback. The link's network is tcp or
// udp.
func Listen(ctx context.Context, network string) (*Relay, error) {
	r := new(Relay)
	var err error
	if r.visitors, err = listenTCP(ctx); err != nil {
		return nil, err
	}
	if r.datagrams, err = listenUDP(ctx); err == nil {
		if network == "tcp" {
			r.tcp, err = listenTCP(ctx)
		} else {
			r.udp, err = listenUDP(ctx)
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

const loopback = "127.0.0.1:0"

// listenTCP listens without keep-alives, which are four system calls a
// connection.
func listenTCP(ctx context.Context) (*net.TCPListener, error) {
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp4", loopback)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

func listenUDP(ctx context.Context) (*net.UDPConn, error) {
	l, err := new(net.ListenConfig).ListenPacket(ctx, "udp4", loopback)
	if err != nil {
		return nil, err
	}
	return l.(*net.UDPConn), nil
}

func (r *Relay) close() {
	if r.visitors != nil {
		r.visitors.Close()
	}
	if r.datagrams != nil {
		r.datagrams.Close()
	}
	if r.tcp != nil {
		r.tcp.Close()
	}
	if r.udp != nil {
		r.udp.Close()
	}
}

// Addrs says where it listens.
func (r *Relay) Addrs() Addrs {
	a := Addrs{TCP: r.visitors.Addr().String(), UDP: r.datagrams.LocalAddr().String()}
	if r.tcp != nil {
		a.Agent = r.tcp.Addr().String()
	} else {
		a.Agent = r.udp.LocalAddr().String()
	}
	return a
}

// Serve waits for one agent and serves visitors until it leaves or ctx ends.
func (r *Relay) Serve(ctx context.Context) error {
	defer r.close()
	defer context.AfterFunc(ctx, r.close)()
	e, err := r.meet()
	if err != nil {
		return ended(ctx, err)
	}
	e.running.Go(func() { e.acceptVisitors(r.visitors) })
	e.running.Go(func() { e.readVisitors(udpbatch.New(r.datagrams, udpbatch.Options{NoGRO: true})) })
	defer e.running.Wait()
	defer r.close()
	return e.run(ctx)
}

// meet waits for the agent.
func (r *Relay) meet() (*end, error) {
	if r.tcp != nil {
		conn, err := r.tcp.AcceptTCP()
		if err != nil {
			return nil, err
		}
		return newEnd(sockio.New(conn), mostTCP), nil
	}
	_, agent, err := r.udp.ReadFromUDPAddrPort(make([]byte, 1))
	if err != nil {
		return nil, err
	}
	here := r.udp.LocalAddr().(*net.UDPAddr)
	r.udp.Close()
	conn, err := net.DialUDP("udp4", here, net.UDPAddrFromAddrPort(agent)) // so that no send looks for the way
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte{0}); err != nil {
		conn.Close()
		return nil, err
	}
	return newEnd(packets(conn), mostUDP), nil
}

// Agent takes visitors to an origin.
type Agent struct {
	Network string `json:"network"` // of the link: tcp or udp
	Relay   string `json:"relay"`   // its Addrs.Agent
	Origin  Addrs  `json:"origin"`
	// Ready is called when the link is there; may be nil.
	Ready func() `json:"-"`
}

// Run serves until the relay leaves or ctx ends.
func (a Agent) Run(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, a.Network, a.Relay)
	if err != nil {
		return ended(ctx, err)
	}
	var e *end
	if tcp, ok := conn.(*net.TCPConn); ok {
		e = newEnd(sockio.New(tcp), mostTCP)
	} else {
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		// The relay answers when it, too, has a socket for this link alone.
		if _, err = conn.Write([]byte{0}); err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		stop()
		if err != nil {
			conn.Close()
			return ended(ctx, err)
		}
		e = newEnd(packets(conn.(*net.UDPConn)), mostUDP)
	}
	e.origin = &a.Origin
	if a.Ready != nil {
		a.Ready()
	}
	defer e.running.Wait()
	return e.run(ctx)
}

// ended is nil if ctx ended it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
