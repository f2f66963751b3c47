package bare

import (
	"net"
	"net/netip"

	"adit/internal/udpbatch"
)

// flow is what comes from one address of a visitor, and the way back to it: a
// socket of all visitors at the relay, and one of its own at the agent.
type flow struct {
	conn *udpbatch.Conn
	to   udpbatch.Addr
}

// mostDatagram is the largest that is carried, in bytes.
const mostDatagram = 8 << 10

// readVisitors sends the datagrams of visitors until the socket is closed.
func (e *end) readVisitors(conn *udpbatch.Conn) {
	numbers := map[netip.AddrPort]uint32{}
	e.readDatagrams(conn, func(from udpbatch.Addr) uint32 {
		id, ok := numbers[from.AddrPort]
		if !ok {
			id = uint32(len(numbers))
			numbers[from.AddrPort] = id
			e.tables.Lock()
			e.flows[id] = flow{conn, from}
			e.tables.Unlock()
		}
		return id
	})
}

// readDatagrams sends those that one read brought with as few writes as they fit
// into.
func (e *end) readDatagrams(conn *udpbatch.Conn, number func(from udpbatch.Addr) uint32) {
	bufs := make([]udpbatch.Buffer, conn.Batch())
	for i := range bufs {
		bufs[i].B = make([]byte, mostDatagram)
	}
	var frames []byte
	for {
		n, err := conn.ReadBatch(bufs)
		if err != nil {
			return
		}
		for _, in := range bufs[:n] {
			if len(frames)+headerSize+in.N > e.most {
				_ = e.send(frames) // as below
				frames = frames[:0]
			}
			var header [headerSize]byte
			putHeader(header[:], number(in.Addr), kindDatagram, in.N)
			frames = append(append(frames, header[:]...), in.B[:in.N]...)
		}
		_ = e.send(frames) // a link that is broken closes this socket
		frames = frames[:0]
	}
}

// datagram takes a datagram of a flow, which waits for others of that flow that
// came with it.
func (e *end) datagram(id uint32, b []byte) {
	if len(e.together) > 0 && id != e.goTo {
		e.sendTogether()
	}
	e.goTo = id
	e.together = append(e.together, b)
}

// sendTogether sends the datagrams that wait.
func (e *end) sendTogether() {
	if len(e.together) == 0 {
		return
	}
	e.tables.Lock()
	f, ok := e.flows[e.goTo]
	if !ok && e.origin != nil && !e.ended {
		f, ok = e.dialFlow(e.goTo)
	}
	e.tables.Unlock()
	if ok {
		_ = f.conn.WriteBatch(e.together, f.to) // may be lost
	}
	clear(e.together)
	e.together = e.together[:0]
}

// dialFlow makes a flow's socket. The caller holds tables.
func (e *end) dialFlow(id uint32) (f flow, ok bool) {
	conn, err := net.Dial("udp4", e.origin.UDP)
	if err != nil {
		return f, false
	}
	f.conn = udpbatch.New(conn.(*net.UDPConn), udpbatch.Options{NoGRO: true})
	e.flows[id] = f
	e.running.Go(func() { e.readDatagrams(f.conn, func(udpbatch.Addr) uint32 { return id }) })
	return f, true
}
