package relay

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/natstest"
)

// TestLateLineRemembersWhatWasTried holds that a line which waited, and whose writing
// then had no answer, is known by its next try: the log may have it, and would have
// it twice.
func TestLateLineRemembersWhatWasTried(t *testing.T) {
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelayWith(t, Options{Config: cfg, auditWait: 500 * time.Millisecond})
	back := server.StreamAway("adit_audit")
	line := store.Late{At: time.Now(), Actor: audit.Actor{Kind: audit.KindUser, Name: "ann"}, Action: "client.set", Target: "made"}
	if err := r.ledger.add(line); err != nil { // while others waited, so that it was not tried yet
		t.Fatal(err)
	}
	var kept store.Late
	eventually(t, "the try is noted", func() bool {
		list, err := os.ReadDir(filepath.Join(r.cfg.DataDir, ledgerFolder))
		if err != nil {
			t.Fatal(err)
		}
		// The line that is being noted is in the folder twice, by a name for now.
		list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
		if len(list) != 1 {
			return false
		}
		kept, err = r.ledger.read(list[0].Name())
		return err == nil && kept.Tried != nil
	})
	if kept.Target != line.Target || kept.Actor != line.Actor || kept.Tried.Target != line.Target || kept.Tried.Seq != 1 {
		t.Errorf("it is kept as %+v", kept)
	}
	back()
	awaitEmpty(t, r)
	if got := audited(t, r); len(got) != 1 || got[0] != "client.set made" {
		t.Errorf("the audit log has %q", got)
	}
}
