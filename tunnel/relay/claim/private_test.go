package claim

import (
	"testing"

	"adit/tunnel/wire"
)

// TestNodesAreToldAnotherTypeOfPrivateTunnels: one of before them would open a public
// port for what it takes for a tcp tunnel.
func TestNodesAreToldAnotherTypeOfPrivateTunnels(t *testing.T) {
	private := wire.Claim{Type: wire.TypeTCP, Mode: wire.ModePrivate, Domain: "ssh", Visitors: []string{"laptop"}}
	told := ForNodes(private)
	if told.Type == wire.TypeTCP {
		t.Errorf("a node is told of a tunnel of type %s", told.Type)
	}
	if back := FromNode(told); !back.Equal(private) {
		t.Errorf("and takes it for %+v", back)
	}
	public := wire.Claim{Type: wire.TypeTCP, Mode: wire.ModeStandard}
	if told := ForNodes(public); !told.Equal(public) {
		t.Errorf("a node is told of a public tunnel as %+v", told)
	}
}
