package relay

import (
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"

	"adit/internal/socketerr"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/sentence"
	"adit/tunnel/wire"
)

// keptPorts is the first port that Unix does not reserve for privileged programs.
const keptPorts = 1024

// publicPorts are the ports that tunnels of a type may have.
type publicPorts struct {
	config.Ports

	// kept is how many of them, counted from the first, the system does not let the relay
	// open.
	kept int
}

// readPorts reads the public ports, and warns about those that the relay may not open.
func (r *Relay) readPorts() {
	host, _, _ := net.SplitHostPort(r.cfg.EdgeHTTPSListen)
	read := func(network, text string) publicPorts {
		parsed, _ := config.ParsePorts(text) // already validated
		ports := publicPorts{Ports: parsed}
		if ports.Last == 0 || ports.First >= keptPorts {
			return ports
		}
		ports.kept = sort.Search(min(ports.Last+1, keptPorts)-ports.First, func(i int) bool {
			return tryPort(network, host, ports.First+i) == nil
		})
		if ports.kept > 0 {
			r.log.Warn("the system keeps public ports from the relay", "key", portsKey(network),
				"ports", fmt.Sprintf("%d-%d", ports.First, ports.First+ports.kept-1), "error", tryPort(network, host, ports.First))
		}
		return ports
	}
	r.tcp, r.udp = read(wire.TypeTCP, r.cfg.TCPPorts), read(wire.TypeUDP, r.cfg.UDPPorts)
}

// portsKey returns the configuration key for the ports of a network.
func portsKey(network string) string { return network + "_ports" }

// tryPort opens a port and closes it. It returns an error only if the relay may not open
// the port.
func tryPort(network, host string, port int) error {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	var err error
	if network == wire.TypeUDP {
		var conn net.PacketConn
		if conn, err = net.ListenPacket(network, addr); err == nil {
			conn.Close()
		}
	} else {
		var ln net.Listener
		if ln, err = net.Listen(network, addr); err == nil {
			ln.Close()
		}
	}
	if !errors.Is(err, socketerr.NotAllowed) {
		return nil
	}
	return sentence.Listen(portsKey(network), addr, err)
}

// portRefused tells an agent why its port did not open, and tells the operator what to do
// about it. A tunnel may get a port back that it had before: another program may be using
// it only for a moment.
func (r *Relay) portRefused(face routing.Face, had bool, err error) *wire.Problem {
	host, _, _ := net.SplitHostPort(r.cfg.EdgeHTTPSListen)
	addr := net.JoinHostPort(host, strconv.Itoa(face.Port))
	r.log.Warn("open a public port", "target", face.Target, "error", sentence.Listen(portsKey(face.Type), addr, err))
	p := &wire.Problem{Field: fieldOf(face)}
	switch {
	case errors.Is(err, socketerr.InUse) && had:
		p.Code, p.Message = wire.CodeUnavailable, "another program on the relay's machine has "+faceName(face)+" now, which this tunnel keeps; the relay retries automatically: ask the relay's operator, or choose another port"
	case errors.Is(err, socketerr.InUse):
		p.Code, p.Message = wire.CodeTaken, faceName(face)+" is in use on the relay's machine; choose another"
	case errors.Is(err, socketerr.NotAllowed):
		p.Code, p.Message = wire.CodeForbidden, "the relay may not open "+faceName(face)+": its system keeps that port; ask its operator, or choose another"
	default: // the relay may have too many files open
		p.Code, p.Message = wire.CodeUnavailable, "the relay cannot open "+faceName(face)+" now"
	}
	return p
}

// allKept refuses a tunnel that asks for no particular port if the relay may not open
// any.
func (r publicPorts) allKept(network string) error {
	return &wire.Problem{Code: wire.CodeForbidden, Field: "type", Message: fmt.Sprintf(
		"the relay may not open any of its %s ports, %d to %d: its system keeps them; ask its operator", network, r.First, r.Last)}
}
