package store

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"adit/tunnel/relay/audit"
)

// external runs a NATS server with JetStream for a test, and returns its URL.
func external(tb testing.TB) string {
	tb.Helper()
	ns, err := server.NewServer(&server.Options{
		ServerName: "test", JetStream: true, StoreDir: tb.TempDir(), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	ns.Start()
	tb.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(time.Minute) {
		tb.Fatal("the server did not start")
	}
	return ns.ClientURL()
}

func TestAuditLogSurvivesBackupAndRestart(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir)
	if err := s.Settings.Put(ctx, SettingAuthority, []byte("x")); err != nil {
		t.Fatal(err)
	}
	write := func(s *Store, action string) {
		t.Helper()
		if _, err := s.Audit.Append(ctx, audit.Change{Action: action}); err != nil {
			t.Fatal(err)
		}
	}
	write(s, "one")
	write(s, "two")
	s.Close()
	s = open(t, dir)
	write(s, "three")
	if _, err := s.Usages.Add(ctx, "c1", "2026-11", Tally{In: 3, Out: 4}); err != nil {
		t.Fatal(err)
	}
	if err := s.Proofs.Set(ctx, Proof{Domain: "a.example", ClientID: "c1"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sinks.Set(ctx, "siem", []byte(`{}`), nil); err != nil {
		t.Fatal(err)
	}
	noted, err := s.Audit.Verify(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back Backup
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	broken := back
	broken.Audit = append([]audit.Entry(nil), back.Audit...)
	broken.Audit[1].Target = "x"
	if err := open(t, t.TempDir()).Restore(ctx, broken); err == nil || !strings.Contains(err.Error(), "entry 2") {
		t.Errorf("a backup with an altered entry: %v", err)
	}
	r := open(t, t.TempDir())
	if err := r.Restore(ctx, back); err != nil {
		t.Fatal(err)
	}
	write(r, "four")
	if got, err := r.Audit.Verify(ctx, noted.Head); err != nil || !got.OK || got.Entries != 4 {
		t.Errorf("restored: %+v, %v", got, err)
	}
	if u := r.Usages.Get("c1", "2026-11"); u.In != 3 || u.Out != 4 {
		t.Errorf("usage %+v", u)
	}
	if u := r.Usages.Get("c1", "2026-12"); u.In != 0 {
		t.Errorf("usage of another month %+v", u)
	}
	if p, ok := r.Proofs.Get("a.example"); !ok || p.ClientID != "c1" || len(r.Sinks.List()) != 1 {
		t.Error("the proof or the sink is gone")
	}
	var seen []string
	if err := r.Audit.Newest(ctx, 4, func(e audit.Entry) bool { seen = append(seen, e.Action); return true }); err != nil || strings.Join(seen, " ") != "three two one" {
		t.Errorf("newest first: %v, %v", seen, err)
	}
	stream, err := r.engine.JetStream().Stream(ctx, "adit_audit")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(ctx, 2); err == nil {
		t.Error("an entry can be deleted")
	}
	if err := stream.Purge(ctx); err == nil {
		t.Error("the log can be emptied")
	}
}

func TestCountsOfManyNodesAddUp(t *testing.T) {
	url := external(t)
	a, b := openAt(t, Config{URLs: []string{url}}), openAt(t, Config{URLs: []string{url}})
	var adding sync.WaitGroup
	for _, s := range []*Store{a, b} {
		adding.Go(func() {
			for range 25 {
				if _, err := s.Usages.Add(t.Context(), "c1", "2026-11", Tally{In: 1, Out: 2}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	u, err := a.Usages.Add(t.Context(), "c1", "2026-11", Tally{In: 0, Out: 0})
	if err != nil || u.In != 50 || u.Out != 100 {
		t.Errorf("got %+v, %v", u, err)
	}
	if u, err = b.Usages.Add(t.Context(), "c1", "2026-12", Tally{In: 7, Out: 7}); err != nil || u.In != 7 {
		t.Errorf("the next month begins with %+v, %v", u, err)
	}
	if u, err = a.Usages.Add(t.Context(), "c1", "2026-11", Tally{In: 1, Out: 1}); err != nil || u.Month != "2026-11" || u.In != 51 {
		t.Errorf("a node that is late: %+v, %v", u, err)
	}
	if u = a.Usages.Get("c1", "2026-12"); u.Month != "2026-12" || u.In != 7 {
		t.Errorf("after a node that was late the month has %+v", u)
	}
}

// TestClockSetToAnotherMonthLosesNoMonth checks that the quota continues where it was once the
// clock is right again.
func TestClockSetToAnotherMonthLosesNoMonth(t *testing.T) {
	s := openAt(t, Config{Dir: t.TempDir()})
	for i, month := range []string{"2026-11", "2031-02", "2026-11", "2019-07", "2026-11"} {
		if _, err := s.Usages.Add(t.Context(), "c1", month, Tally{In: 10, Out: 1}); err != nil {
			t.Fatal(i, err)
		}
	}
	for month, want := range map[string]int64{"2026-11": 30, "2031-02": 10, "2019-07": 10, "2027-01": 0} {
		if got := s.Usages.Get("c1", month); got.Month != month || got.In != want || got.Out != want/10 {
			t.Errorf("%s: got %+v, want %d bytes in", month, got, want)
		}
	}
	for i := range 2 * maxMonths {
		if _, err := s.Usages.Add(t.Context(), "c1", "2040-0"+string(rune('1'+i)), Tally{In: 1, Out: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if v, _, _ := s.Usages.table.Get("c1"); len(v.Others) != maxMonths {
		t.Errorf("%d other months are kept: %+v", len(v.Others), v)
	}
}

func TestSeenInTheFutureIsNotNewer(t *testing.T) {
	s := openAt(t, Config{Dir: t.TempDir()})
	now := time.Now()
	note := func(at time.Time, address string) string {
		t.Helper()
		if err := s.Activities.Note(t.Context(), "c1", Seen{At: at, Address: address}, nil); err != nil {
			t.Fatal(err)
		}
		v, _ := s.Activities.Get("c1")
		return v.Seen.Address
	}
	for _, step := range []struct {
		at            time.Duration
		address, want string
	}{{0, "first", "first"}, {-time.Minute, "late", "first"}, {10_000 * time.Hour, "future", "future"}, {time.Second, "right again", "right again"}} {
		if got := note(now.Add(step.at), step.address); got != step.want {
			t.Errorf("%s: known is %s, want %s", step.address, got, step.want)
		}
		// Who only reported something was not seen anew.
		if err := s.Activities.Note(t.Context(), "c1", Seen{}, []ClientError{{Time: now.Add(step.at), Message: step.address}}); err != nil {
			t.Fatal(err)
		}
		if v, _ := s.Activities.Get("c1"); v.Seen.Address != step.want {
			t.Errorf("%s: after a report known is %q, want %s", step.address, v.Seen.Address, step.want)
		}
	}
}

// TestErrorsThatAreLongAsJSONAreKeptAsFarAsTheyFit matters because agents may report any text,
// and one byte of it may become six as JSON.
func TestErrorsThatAreLongAsJSONAreKeptAsFarAsTheyFit(t *testing.T) {
	s := openAt(t, Config{Dir: t.TempDir()})
	now := time.Now()
	for i := range MaxErrors {
		list := []ClientError{{Time: now.Add(time.Duration(i) * time.Second), Key: strconv.Itoa(i), Message: strings.Repeat("<", 1024)}}
		if err := s.Activities.Note(t.Context(), "c1", Seen{At: now, Address: "here"}, list); err != nil {
			t.Fatal(err)
		}
	}
	v, _ := s.Activities.Get("c1")
	if n := len(v.Errors); n < 10 || v.Errors[n-1].Key != strconv.Itoa(MaxErrors-1) {
		t.Errorf("%d errors are kept, and not the newest of them", n)
	}
	if v.Seen.Address != "here" {
		t.Errorf("seen: %+v", v.Seen)
	}
}
