package nodes

import (
	"testing"

	"adit/tunnel/wire"
)

// begun counts the flows that are begun with agents of this node.
type begun struct {
	Local
	flows int
}

func (b *begun) Flow(string, uint32, func([]byte), func()) Flow {
	b.flows++
	return silent{}
}

// silent is a flow of which nothing is told to anybody.
type silent struct{}

func (silent) Send([]byte)    {}
func (silent) From(wire.From) {}
func (silent) Withheld()      {}
func (silent) Close()         {}

// TestNoFlowBeginsBehindItsEnd: a visitor's node may tell of a flow's end while a packet of
// it is on its way.
func TestNoFlowBeginsBehindItsEnd(t *testing.T) {
	local := new(begun)
	fs := &flowSet{mesh: &Mesh{cfg: Config{Local: local}}, most: maxFlows, flows: make(map[flowKey]*farFlow), parts: make(map[string]*wire.Reassembly)}
	packet := wire.Flow{Kind: wire.FlowWhole, Endpoint: 1, Number: 7, Payload: []byte("x")}
	from := wire.Flow{Kind: wire.FlowFrom, Endpoint: 1, Number: 7, Payload: []byte("192.0.2.1:7")}
	end := wire.Flow{Kind: wire.FlowClose, Endpoint: 1, Number: 7}
	for i, step := range []struct {
		session string
		told    wire.Flow
		begun   int
	}{
		{"s1", packet, 1},
		{"s1", packet, 1},
		{"s1", end, 1},
		{"s1", packet, 1},
		{"s1", from, 1},
		{"s2", packet, 2}, // another agent's
		{"s3", end, 2},
		{"s3", from, 2},
	} {
		if fs.take(step.session, step.told); local.flows != step.begun {
			t.Errorf("step %d: %d flows have begun, want %d", i, local.flows, step.begun)
		}
	}
}

// TestFlowsOfOneClientKeepNoOthersOut: all flows of a node's agents that begin at another
// node share a session, and packets with forged addresses begin as many as somebody likes.
func TestFlowsOfOneClientKeepNoOthersOut(t *testing.T) {
	const most = 10
	mesh := &Mesh{cfg: Config{Local: new(begun)}}
	for session, client := range map[string]string{"s1": "busy", "s2": "busy", "s3": "other"} {
		mesh.AgentUp(Agent{Session: session, ClientID: client, Instance: session})
	}
	fs := &flowSet{mesh: mesh, most: most, flows: make(map[flowKey]*farFlow), parts: make(map[string]*wire.Reassembly)}
	tell := func(session string, kind wire.FlowKind) (n int) {
		for number := range uint32(2 * most) {
			fs.take(session, wire.Flow{Kind: kind, Endpoint: 1, Number: number, Payload: []byte("x")})
		}
		for key := range fs.flows {
			if key.session == session {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		session string
		want    int
	}{{"s1", most}, {"s2", 0}, {"s3", most / 2}} {
		if n := tell(step.session, wire.FlowWhole); n != step.want {
			t.Errorf("the agent %s has %d flows, want %d", step.session, n, step.want)
		}
	}
	tell("s1", wire.FlowClose)
	mesh.AgentDown("s3") // its flows are its client's still
	fs.end(func(*farFlow) bool { return true })
	if n, clients := fs.shares.Taken(); n != 0 || clients != 0 {
		t.Errorf("in the end %d flows are counted, of %d clients", n, clients)
	}
}
