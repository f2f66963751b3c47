package visits

import (
	"context"
	"io"
	"sync"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Flows holds the flows of the agent's own visits over one session.
type Flows struct {
	session link.Session

	mu  sync.RWMutex
	all map[uint32]*Flow
}

// NewFlows returns the Flows of a session, which has none yet.
func NewFlows(s link.Session) *Flows { return &Flows{session: s, all: make(map[uint32]*Flow)} }

// Bring delivers packets to the flow with the given number, if there is one. They are valid until
// it returns. It must not be called concurrently.
func (fs *Flows) Bring(number uint32, payloads [][]byte) {
	fs.mu.RLock()
	f := fs.all[number]
	fs.mu.RUnlock()
	if f != nil {
		f.answer(payloads)
	}
}

// Open returns the flow with the number that the relay assigned together with stream. The flow ends
// with the stream, or when leave is closed. answer receives what arrives, and must not block.
func (fs *Flows) Open(number uint32, stream link.Stream, leave <-chan struct{}, answer func(payloads [][]byte)) *Flow {
	f := &Flow{of: fs, number: number, stream: stream, leave: leave, answer: answer}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.all[number] = f
	return f
}

func (fs *Flows) remove(number uint32) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.all, number)
}

// Flow is one flow of a visit, an udpflow.Way.
type Flow struct {
	of     *Flows
	number uint32
	stream link.Stream
	leave  <-chan struct{}
	answer func(payloads [][]byte)

	// Of who sends.
	packet uint16
	buf    []byte
}

// Send sends packets to the tunnel.
func (f *Flow) Send(payloads [][]byte) {
	s := f.of.session
	if len(payloads) > 1 {
		link.GatherDatagrams(s)
		defer link.SendGathered(s)
	}
	for _, payload := range payloads {
		f.packet++
		d := wire.Flow{Endpoint: wire.EndpointVisits, Number: f.number, Packet: f.packet, Payload: payload}
		f.buf, _ = wire.SplitFlow(f.buf, d, s.MaxDatagram(), s.SendDatagram) // a lost packet is UDP's own
	}
}

// Run returns when the flow has ended or ctx ends, and ends the flow.
func (f *Flow) Run(ctx context.Context) {
	var reading sync.WaitGroup
	over := make(chan struct{})
	reading.Go(func() {
		defer close(over)
		_, _ = io.ReadFull(f.stream, make([]byte, 1)) // the relay's end of the stream is the flow's
	})
	select {
	case <-ctx.Done():
	case <-f.leave:
	case <-over:
	}
	f.of.remove(f.number)
	f.stream.Reset()
	_ = f.stream.Close()
	reading.Wait()
}
