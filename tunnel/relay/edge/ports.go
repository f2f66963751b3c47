package edge

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/wire"
)

// tcpPort is the public port of a tcp endpoint.
type tcpPort struct {
	net.Listener
	closed chan struct{}
	once   sync.Once
}

// StopAccepting implements routing.Port.
func (p *tcpPort) StopAccepting() { p.Close() }

// EndFlows implements routing.Port. A tcp port has no flows.
func (p *tcpPort) EndFlows(func(*routing.Backend, netip.Addr) bool) {}

// Close implements routing.Port.
func (p *tcpPort) Close() {
	p.once.Do(func() {
		close(p.closed)
		p.Listener.Close()
	})
}

// openPort opens and serves the port of a tcp or udp endpoint. It returns nil if the endpoint
// has none.
func (e *Edge) openPort(ep *routing.Endpoint) (routing.Port, error) {
	addr := net.JoinHostPort(e.cfg.PortHost, strconv.Itoa(ep.Port))
	switch {
	case ep.Mode == wire.ModePrivate: // its visitors come by their own sessions
		if ep.Type == wire.TypeUDP {
			return e.udp.OpenPrivate(ep), nil
		}
	case ep.Type == wire.TypeTCP:
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("open port: %w", err)
		}
		port := &tcpPort{Listener: ln, closed: make(chan struct{})}
		e.ports.Go(func() {
			visitor.AcceptEach(e.life, ln, port.closed, func(conn net.Conn) {
				e.ports.Go(func() {
					v := e.admission.Admit(conn)
					if v == nil {
						conn.Close()
						return
					}
					e.servePort(v, ep.Face)
				})
			})
		})
		return port, nil
	case ep.Type == wire.TypeUDP:
		port, err := e.udp.Open(addr, ep)
		if err != nil {
			return nil, err
		}
		e.ports.Go(port.Serve)
		return port, nil
	}
	return nil, nil
}

// servePort forwards a connection that came in on the port of a face.
func (e *Edge) servePort(v *visitor.Conn, f routing.Face) {
	ep := e.table.At(f)
	if ep == nil && e.table.AwaitFace(e.life, f) {
		ep = e.table.At(f)
	}
	if ep == nil {
		v.Abort()
		return
	}
	e.serveRaw(v, ep, "")
}
