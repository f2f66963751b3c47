package claim

import (
	"testing"

	"adit/tunnel/wire"
)

// TestNodesAreToldAnotherTypeOfPrivateTunnels: one of before them would open a public
// port for what it takes for a tcp or udp tunnel.
func TestNodesAreToldAnotherTypeOfPrivateTunnels(t *testing.T) {
	for _, kind := range []string{wire.TypeTCP, wire.TypeUDP} {
		private := wire.Claim{Type: kind, Mode: wire.ModePrivate, Domain: "ssh", Visitors: []string{"laptop"}}
		told := ForNodes(private)
		if told.Type == wire.TypeTCP || told.Type == wire.TypeUDP {
			t.Errorf("a node is told of a tunnel of type %s", told.Type)
		}
		if back := FromNode(told); !back.Equal(private) {
			t.Errorf("and takes it for %+v", back)
		}
		public := wire.Claim{Type: kind, Mode: wire.ModeStandard}
		if told := ForNodes(public); !told.Equal(public) {
			t.Errorf("a node is told of a public tunnel as %+v", told)
		}
	}
}

func TestNodesHavePoliciesFromTheStore(t *testing.T) {
	told := ForNodes(wire.Claim{Type: wire.TypeHTTPS, Mode: wire.ModeStandard, Policy: []byte(`{}`), PolicyReplaces: true, PolicyHolds: true, PolicyOf: "tcp.20001"})
	if told.Policy != nil || told.PolicyReplaces || told.PolicyHolds || told.PolicyOf != "" {
		t.Errorf("a node is told of a policy: %+v", told)
	}
}
