package edge

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// packets is an agent's session that notes the kinds of what it is sent.
type packets struct {
	origintest.Session
	kinds []wire.FlowKind
}

func (p *packets) MaxDatagram() int { return 1200 }

func (p *packets) SendDatagram(b []byte) error {
	d, err := wire.ParseFlow(b)
	p.kinds = append(p.kinds, d.Kind)
	return err
}

// TestAVisitEndsThoughItsGuestReadsNothing checks that packets are no longer forwarded for a
// guest that is no longer admitted, even if it does not read what it is told.
func TestAVisitEndsThoughItsGuestReadsNothing(t *testing.T) {
	face := routing.Face{Target: claims.TargetPrivate("nas", "game"), Slot: claims.SlotPrivate, Type: wire.TypeUDP, Mode: wire.ModePrivate}
	guest := visitor.Guest{Client: "laptop", ClientID: "l", Addr: netip.MustParseAddrPort("192.0.2.1:1000")}
	for _, c := range []struct {
		name string
		end  func(e *Edge, b *routing.Backend)
	}{
		{"it is not invited any more", func(e *Edge, b *routing.Backend) {
			again := &routing.Backend{Agent: b.Agent, Key: b.Key, Number: b.Number}
			if _, err := e.Attach(face, again); err != nil {
				t.Error(err)
			}
		}},
		{"the tunnel is gone", func(e *Edge, b *routing.Backend) { e.Detach(face, b) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []wire.Access
				e := New(Config{
					Policy: func(string) *policy.Policy { return nil },
					Record: func(_ *routing.Endpoint, _ *routing.Backend, a wire.Access) { seen = append(seen, a) },
				})
				owner, from := new(packets), new(packets)
				b := &routing.Backend{
					Key: "t", Number: 7, Visitors: []string{guest.Client},
					Agent: &routing.Agent{ClientID: "n", Instance: "i", Session: owner, Account: new(shape.Account)},
				}
				if _, err := e.Attach(face, b); err != nil {
					t.Fatal(err)
				}
				near, far := net.Pipe()
				defer far.Close()
				var stream link.Stream = origintest.Stream{Conn: near}
				at := &routing.Agent{ClientID: guest.ClientID, Session: from}
				served := make(chan struct{})
				var flow uint32
				go func() {
					defer close(served)
					e.VisitUDP(stream, at, e.Private(t.Context(), face.Target, guest), guest, func(number uint32) error {
						flow = number
						_, err := stream.Write([]byte("101"))
						return err
					})
				}()
				synctest.Wait()
				c.end(e, b)
				synctest.Wait()
				select {
				case <-served:
				default:
					t.Error("the visit goes on")
				}
				before := len(owner.kinds)
				at.Flows.Bring(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWhole, Endpoint: wire.EndpointVisits, Number: flow, Payload: []byte("x")}))
				if len(owner.kinds) != before || before != 2 || owner.kinds[0] != wire.FlowFrom || owner.kinds[1] != wire.FlowClose {
					t.Errorf("the tunnel's agent was sent %v, the last of it after the visit", owner.kinds)
				}
				near.Close()
				<-served
				if len(seen) != 1 {
					t.Errorf("the access log has %+v", seen)
				}
				e.kill()
				e.ports.Wait()
			})
		})
	}
}
