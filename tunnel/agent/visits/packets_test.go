package visits

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// noting is a session that notes what it is to send.
type noting struct {
	link.Session
	sent []wire.Flow
}

func (*noting) MaxDatagram() int { return 1200 }

func (n *noting) SendDatagram(b []byte) error {
	d, err := wire.ParseFlow(b)
	d.Payload = slices.Clone(d.Payload)
	n.sent = append(n.sent, d)
	return err
}

// inviting is a Dialer that lets everybody in, by flows whose streams have the relay at
// their other end.
type inviting struct {
	nobody
	flows *Flows
	leave chan struct{}
	relay net.Conn
}

func (i *inviting) DialPrivateUDP(_ context.Context, _ string, answer func([][]byte)) (*Flow, error) {
	near, far := net.Pipe()
	i.relay = far
	return i.flows.Open(7, pipe{near}, i.leave, answer), nil
}

// TestPacketsOfAVisit leads packets to a private tunnel and back, and ends the visit from
// each of its sides.
func TestPacketsOfAVisit(t *testing.T) {
	for name, end := range map[string]func(relay, local net.Conn, leave chan struct{}, cancel func()){
		"who visits leaves":     func(_, local net.Conn, _ chan struct{}, _ func()) { local.Close() },
		"the relay ends it":     func(relay, _ net.Conn, _ chan struct{}, _ func()) { relay.Close() },
		"the session is left":   func(_, _ net.Conn, leave chan struct{}, _ func()) { close(leave) },
		"the agent is to end":   func(_, _ net.Conn, _ chan struct{}, cancel func()) { cancel() },
		"who visits says a lie": func(_, local net.Conn, _ chan struct{}, _ func()) { local.Write([]byte{0, 9, 'x'}); local.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				session := new(noting)
				dialer := &inviting{flows: NewFlows(session), leave: make(chan struct{})}
				vs := New(slog.New(slog.DiscardHandler), dialer)
				near, local := net.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				over := make(chan error)
				go func() { over <- vs.VisitUDP(ctx, "nas/game", func() (net.Conn, error) { return near, nil }) }()
				synctest.Wait()
				lost, large := strings.Repeat("x", 1500), strings.Repeat("y", 1500)
				for _, packet := range []string{"\x00\x02hi", "\x00\x00", "\x05\xdc" + lost, "\x05\xdc" + large} {
					if _, err := io.WriteString(local, packet); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				var got []string
				var together wire.Reassembly
				for i, d := range session.sent {
					if i == 3 { // the end of the third
						continue
					}
					if d.Endpoint != wire.EndpointVisits || d.Number != 7 {
						t.Errorf("a packet went as %+v", d)
					}
					if whole := together.Add(d); whole != nil {
						got = append(got, string(whole))
					}
				}
				if want := []string{"hi", "", large}; !slices.Equal(got, want) {
					t.Errorf("to the tunnel went %q, want %q", got, want)
				}
				dialer.flows.Bring(8, [][]byte{[]byte("another's")})
				dialer.flows.Bring(7, [][]byte{[]byte("yes"), []byte("no")})
				answer := make([]byte, 9)
				if _, err := io.ReadFull(local, answer); err != nil || string(answer) != "\x00\x03yes\x00\x02no" {
					t.Errorf("the answer is %q, %v", answer, err)
				}
				end(dialer.relay, local, dialer.leave, cancel)
				synctest.Wait()
				select {
				case err := <-over:
					if err != nil {
						t.Error(err)
					}
				default:
					t.Fatal("the visit goes on")
				}
				if _, err := dialer.relay.Read(make([]byte, 1)); err == nil {
					t.Error("the relay's stream is open")
				}
				if _, err := local.Read(make([]byte, 1)); err == nil {
					t.Error("the connection of who visits is open")
				}
				if len(dialer.flows.all) != 0 || vs.ways.Load() != 0 {
					t.Errorf("%d flows are known, %d visits are counted", len(dialer.flows.all), vs.ways.Load())
				}
			})
		})
	}
}

// TestAVisitOfPacketsThatIsNotTakenEnds has whoever asked be gone when the relay says yes.
func TestAVisitOfPacketsThatIsNotTakenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialer := &inviting{flows: NewFlows(new(noting)), leave: make(chan struct{})}
		vs := New(slog.New(slog.DiscardHandler), dialer)
		gone := errors.New("gone")
		err := vs.VisitUDP(t.Context(), "nas/game", func() (net.Conn, error) {
			dialer.flows.Bring(7, [][]byte{[]byte("early")}) // dropped: nobody is there for it
			return nil, gone
		})
		if !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		if _, err := dialer.relay.Read(make([]byte, 1)); err == nil || len(dialer.flows.all) != 0 || vs.ways.Load() != 0 {
			t.Errorf("the relay's stream: %v; %d flows are known, %d visits are counted", err, len(dialer.flows.all), vs.ways.Load())
		}
	})
}
