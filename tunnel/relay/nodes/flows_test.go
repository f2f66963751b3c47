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

// silent is a flow that tells nobody anything.
type silent struct{}

func (silent) Send([]byte)    {}
func (silent) From(wire.From) {}
func (silent) Withheld()      {}
func (silent) Close()         {}

// TestNoFlowBeginsBehindItsEnd covers a flow whose end is announced by the visitor's node
// while one of its packets is still on the way.
func TestNoFlowBeginsBehindItsEnd(t *testing.T) {
	local := new(begun)
	fs := &flowSet{mesh: &Mesh{cfg: Config{Local: local}}, flows: make(map[flowKey]*farFlow), parts: make(map[string]*wire.Reassembly)}
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
