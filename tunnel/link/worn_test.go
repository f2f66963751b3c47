package link

import (
	"testing"

	"adit/tunnel/link/record"
)

// TestSessionsSayWhenTheyAreWorn counts what both sides send: who only downloads
// has hardly sent anything when the peer's keys are used up.
func TestSessionsSayWhenTheyAreWorn(t *testing.T) {
	l, fingerprint := testListener(t, ListenConfig{})
	defer l.Close()
	client, server := dialDTLSPair(t, l, DialConfig{Fingerprint: fingerprint})
	defer client.Close("the test is over")
	down, up := client.(*dtlsSession), server.(*dtlsSession)
	if down.renewAfter != record.RenewAfter || up.renewAfter != record.RenewAfter {
		t.Errorf("worn after %d and %d records, want %d", down.renewAfter, up.renewAfter, uint64(record.RenewAfter))
	}
	const some = 50
	if sent := down.conn.NextNumber(); sent >= some {
		t.Fatalf("%d records were sent for a handshake, want fewer than %d", sent, some)
	}
	down.renewAfter, up.renewAfter = some, 1<<62
	if client.Stats().Worn || server.Stats().Worn {
		t.Error("worn from the start")
	}
	for i := byte(0); !client.Stats().Worn; i++ {
		if err := server.SendDatagram([]byte{i}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.ReceiveDatagram(testContext(t), nil); err != nil {
			t.Fatal(err)
		}
	}
	if newest := down.Session.Stats().Newest; newest < some {
		t.Errorf("worn at record %d, want from %d on", newest, some)
	}
	if server.Stats().Worn {
		t.Error("worn before its own bound")
	}
	up.renewAfter = up.conn.NextNumber()
	if !server.Stats().Worn {
		t.Error("not worn by what it sent itself")
	}
}
