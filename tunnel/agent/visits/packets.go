package visits

import (
	"context"
	"net"
	"sync"

	"adit/internal/udpflow"
)

// servePackets leads the packets that arrive on conn to the tunnel until ctx ends, with a separate
// flow for each sender, and closes conn.
func (vs *Visits) servePackets(ctx context.Context, v *visit, conn *net.UDPConn) error {
	return udpflow.Serve(ctx, conn, udpflow.Config{
		Open: func(ctx context.Context, answer func([][]byte)) (udpflow.Way, error) {
			if err := vs.enter(); err != nil {
				return nil, err
			}
			flow, err := vs.dialer.DialPrivateUDP(ctx, v.spec.Tunnel, answer)
			if err != nil {
				vs.leave()
				return nil, err
			}
			return countedFlow{flow, vs}, nil
		},
		Most:  maxGuests,
		Enter: v.counters.Enter,
		Leave: v.counters.Leave,
		Passed: func(to, from int) {
			v.counters.In(to)
			v.counters.Out(from)
		},
		Opened: func() { v.note(StateListening, "") },
		Failed: func(err error) { vs.notLed(v, err) },
	})
}

// countedFlow is a flow that is removed from the visits when it ends.
type countedFlow struct {
	*Flow
	visits *Visits
}

func (f countedFlow) Run(ctx context.Context) {
	defer f.visits.leave()
	f.Flow.Run(ctx)
}

// VisitUDP leads the packets of one sender to a private tunnel, until its connection or the flow
// ends, or ctx ends. Once the relay has admitted the visit, VisitUDP calls take for the connection,
// on which each packet is preceded by its length as udpflow.Framed says, and closes that itself.
func (vs *Visits) VisitUDP(ctx context.Context, tunnel string, take func() (net.Conn, error)) error {
	if err := vs.enter(); err != nil {
		return err
	}
	defer vs.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := make(chan *udpflow.Framed, 1)
	var local *udpflow.Framed // of who answers
	flow, err := vs.dialer.DialPrivateUDP(ctx, tunnel, func(payloads [][]byte) {
		if local == nil {
			select {
			case local = <-begun:
			default:
				return
			}
		}
		local.Send(payloads)
	})
	if err != nil {
		return err
	}
	conn, err := take()
	if err != nil {
		cancel()
		flow.Run(ctx)
		return err
	}
	framed := udpflow.NewFramed(conn, flow.Send)
	begun <- framed
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel()
		framed.Run(ctx)
	})
	flow.Run(ctx)
	cancel()
	reading.Wait()
	return nil
}
