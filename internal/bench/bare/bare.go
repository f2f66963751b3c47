// Package bare is the baseline of the benchmark: the path from visitors through a relay and an
// agent to an origin, and nothing else. Relay and agent copy bytes and datagrams over one link: a
// UDP socket, or a TCP connection, either plain or with the standard library's TLS 1.3. There is no
// other encryption, no authentication, no limits, no log, and no flow control beyond the sockets'
// own, so a visitor who does not read stops all others. Over UDP nothing is retransmitted: what
// fits into the sockets' buffers gets through, bulk data does not. The agent learns of a visitor
// from the visitor's first bytes, so an origin cannot speak first.
package bare

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"adit/internal/sockio"
	"adit/internal/udpbatch"
)

// Addrs are the addresses on which something listens: for TCP and UDP visitors, as at the relay and
// the origin, and for the agent.
type Addrs struct {
	TCP   string `json:"tcp"`
	UDP   string `json:"udp"`
	Agent string `json:"agent,omitempty"`
}

// Relay is what visitors and the agent connect to.
type Relay struct {
	visitors  net.Listener
	datagrams net.PacketConn
	// The agent's; one of them is nil.
	tcp net.Listener
	udp net.PacketConn
	key *tls.Certificate // of a link with TLS; nil without
}

// Listen returns a relay that listens on loopback. The link's network is udp, tcp, or tls, which
// means TLS over TCP.
func Listen(ctx context.Context, network string) (*Relay, error) {
	const loopback = "127.0.0.1:0"
	config := net.ListenConfig{KeepAlive: -1} // they are four system calls a connection
	r := new(Relay)
	var errs [4]error
	r.visitors, errs[0] = config.Listen(ctx, "tcp4", loopback)
	r.datagrams, errs[1] = config.ListenPacket(ctx, "udp4", loopback)
	if network == "udp" {
		r.udp, errs[2] = config.ListenPacket(ctx, "udp4", loopback)
	} else {
		r.tcp, errs[2] = config.Listen(ctx, "tcp4", loopback)
	}
	if network == "tls" {
		r.key, errs[3] = newKey()
	}
	if err := errors.Join(errs[:]...); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close stops the relay.
func (r *Relay) Close() {
	for _, l := range []net.Listener{r.visitors, r.tcp} {
		if l != nil {
			l.Close()
		}
	}
	for _, c := range []net.PacketConn{r.datagrams, r.udp} {
		if c != nil {
			c.Close()
		}
	}
}

// Addrs returns the addresses on which the relay listens.
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
	defer r.Close()
	defer context.AfterFunc(ctx, r.Close)()
	e, err := r.meet(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	e.running.Go(func() { e.acceptVisitors(r.visitors) })
	e.running.Go(func() {
		e.readVisitors(udpbatch.New(r.datagrams, udpbatch.Options{NoGRO: true}))
	})
	defer e.running.Wait()
	defer r.Close()
	return e.run(ctx)
}

// meet waits for the agent.
func (r *Relay) meet(ctx context.Context) (*end, error) {
	if r.tcp != nil {
		conn, err := r.tcp.Accept()
		if err != nil {
			return nil, err
		}
		if r.key != nil {
			return sealedEnd(ctx, conn, tls.Server, &tls.Config{
				Certificates: []tls.Certificate{*r.key}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
			})
		}
		return newEnd(conn), nil
	}
	_, agent, err := r.udp.ReadFrom(make([]byte, 1))
	if err != nil {
		return nil, err
	}
	// A socket for this link alone: no send has to look for the way.
	here := r.udp.LocalAddr().(*net.UDPAddr)
	r.udp.Close()
	conn, err := net.DialUDP("udp4", here, agent.(*net.UDPAddr))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte{0}); err != nil {
		conn.Close()
		return nil, err
	}
	return newEnd(conn), nil
}

// Agent leads visitors to an origin.
type Agent struct {
	Network string `json:"network"` // of the link: udp, tcp or tls
	Relay   string `json:"relay"`   // its Addrs.Agent
	Origin  Addrs  `json:"origin"`
	// Ready is called when the link is up; may be nil.
	Ready func() `json:"-"`
}

// Run serves until the relay leaves or ctx ends.
func (a Agent) Run(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, strings.Replace(a.Network, "tls", "tcp", 1), a.Relay)
	if err != nil {
		return ended(ctx, err)
	}
	if a.Network == "udp" {
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		if _, err = conn.Write([]byte{0}); err == nil {
			_, err = conn.Read(make([]byte, 1)) // from the relay's socket for this link
		}
		stop()
		if err != nil {
			conn.Close()
			return ended(ctx, err)
		}
	}
	e := newEnd(conn)
	if a.Network == "tls" {
		// There is nobody else on loopback whom it could take for the relay.
		config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // see above
		if e, err = sealedEnd(ctx, conn, tls.Client, config); err != nil {
			return ended(ctx, err)
		}
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

func newEnd(conn net.Conn) *end {
	e := &end{link: sockio.Wrap(conn), most: 256 << 10, streams: map[uint32]*stream{}, flows: map[uint32]flow{}}
	if udp, ok := conn.(*net.UDPConn); ok {
		e.link = &packetLink{conn: udpbatch.New(udp, udpbatch.Options{NoOffload: true})}
		e.most = 56 << 10 // one datagram, which loopback takes whole
	}
	e.room.L = &e.mu
	return e
}
