package nodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/wire"
)

func TestSessionIDsTravel(t *testing.T) {
	for _, id := range []string{"s", "s_0123456789abcdef01", strings.Repeat("x", maxID)} {
		b := append(appendSession(nil, id), "rest"...)
		r := bytes.NewReader(b)
		if got, err := readSession(r); err != nil || got != id || r.Len() != 4 {
			t.Errorf("%q: read %q, %v, %d bytes left", id, got, err, r.Len())
		}
		if got, rest, err := cutSession(b); err != nil || string(got) != id || string(rest) != "rest" {
			t.Errorf("%q: cut %q, %q, %v", id, got, rest, err)
		}
	}
	for _, bad := range [][]byte{{}, {0}, {0, 'x'}, {maxID + 1}, append([]byte{maxID + 1}, make([]byte, 2*maxID)...), {3, 'a', 'b'}} {
		if id, err := readSession(bytes.NewReader(bad)); err == nil {
			t.Errorf("%v was read as %q", bad, id)
		}
		if id, _, err := cutSession(bad); err == nil {
			t.Errorf("%v was cut as %q", bad, id)
		}
	}
}

func FuzzSession(f *testing.F) {
	f.Add(appendSession(nil, "s_1"))
	f.Add([]byte{255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		id, rest, err := cutSession(b)
		read, readErr := readSession(bytes.NewReader(b))
		if (err == nil) != (readErr == nil) || err == nil && string(id) != read {
			t.Fatalf("cut %q, %v; read %q, %v", id, err, read, readErr)
		}
		if err == nil && !bytes.Equal(append(appendSession(nil, string(id)), rest...), b) {
			t.Fatalf("%v does not come back", b)
		}
	})
}

// TestTunnelsThatNotEveryNodeServes checks that a node that would serve such a tunnel
// only in part finds no slot for it, and that all of it fits in a line, whatever the
// values.
func TestTunnelsThatNotEveryNodeServes(t *testing.T) {
	long := strings.Repeat(`"\u2028`+"\t<&>", wire.MaxHeaderBytes)[:wire.MaxHeaderBytes-len("X-Env")-1] + "!"
	long = strings.ToValidUTF8(long, "")
	changes := wire.ChangeHeaders(map[string]string{"X-Env": long})
	if err := changes.Check(wire.Requests); err != nil {
		t.Fatal(err)
	}
	names := make([]string, wire.MaxPaths)
	paths := make([]wire.ClaimPath, wire.MaxPaths)
	for i := range paths {
		names[i] = fmt.Sprintf("/%02d", i) + strings.Repeat(`"`, wire.MaxPath-3)
		paths[i] = wire.ClaimPath{Path: names[i], Strip: true, HostHeader: strings.Repeat("a", 253), HTTP2: true, Scheme: "https", Port: math.MaxInt}
	}
	if err := wire.CheckPaths(names); err != nil {
		t.Fatal(err)
	}
	plain := Tunnel{Session: "s1", Key: "k", Target: "t", Slot: "tls", Claim: wire.Claim{Type: wire.TypeHTTPS}}
	changing, leading, both := plain, plain, plain
	changing.Claim.RequestHeaders, changing.Claim.ResponseHeaders = changes, changes
	leading.Claim.Paths = paths
	both.Claim = changing.Claim
	both.Claim.Paths = paths
	for _, c := range []struct {
		v                   Tunnel
		before, withHeaders string // what a node finds that knows neither, and one that knows no paths
	}{{plain, "tls", "tls"}, {changing, "", "tls"}, {leading, "", ""}, {both, "", ""}} {
		var b bytes.Buffer
		if err := newLines(&b).Encode(tunnelLine(c.v)); err != nil || b.Len() > maxLine-4<<10 {
			t.Errorf("a line of %d bytes, %v", b.Len(), err)
		}
		var l line
		if err := json.Unmarshal(b.Bytes(), &l); err != nil || l.Tunnel.Slot != c.before || !l.told().Equal(c.v) {
			t.Errorf("read %.100s as %.100s, %v", b.Bytes(), fmt.Sprint(l.told()), err)
		}
		old := *l.Tunnel
		if old.Slot == "" && old.Claim.ChangesHeaders() {
			old.Slot = l.Slot
		}
		if old.Slot != c.withHeaders {
			t.Errorf("a node that knows no paths finds %q of %.100s", old.Slot, b.Bytes())
		}
	}
}

// TestTableTellsWhatThereIs adds a reader in the middle.
func TestTableTellsWhatThereIs(t *testing.T) {
	var tab table
	tab.agent(Agent{Session: "s1"})
	tab.agent(Agent{Session: "s2"})
	tab.up(Tunnel{Session: "s1", Key: "k"})
	tab.up(Tunnel{Session: "s9", Key: "nobody's"})
	tab.gone("s2")
	tab.storeAway(true)
	r := tab.follow()
	tab.storeAway(true)
	tab.storeAway(false)
	tab.down("s1", "k")
	tab.down("s1", "k")
	tab.gone("s1")
	tab.gone("s1")
	tab.drain()
	tab.drain()
	lines, ok := r.take()
	var ops []string
	for _, l := range lines {
		ops = append(ops, l.Op)
	}
	if got := strings.Join(ops, " "); !ok || got != "session tunnel store whole store withdrawn gone drain" {
		t.Errorf("got %s, %t", got, ok)
	}
	for range maxBehind + 1 {
		r.add(line{Op: opDrain})
	}
	if _, ok := r.take(); ok {
		t.Error("a reader that is too far behind is not told so")
	}
	tab.unfollow(r)
}

// TestChangesAreToldToThoseWhoFollow checks that a complete change to the store reaches
// those who follow the table and those who come a while later, and that a change larger
// than a line is left out.
func TestChangesAreToldToThoseWhoFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m, other Mesh
		m.Tell([]byte(`{"key":"old"}`))
		time.Sleep(recentTime - time.Minute)
		m.Tell([]byte(`{"key":"a"}`))
		m.Tell(append(append([]byte(`"`), bytes.Repeat([]byte("x"), maxTold)...), '"'))
		time.Sleep(2 * time.Minute)
		r := m.table.follow()
		m.Tell([]byte(`{"key":"b"}`))
		lines, _ := r.take()
		if len(lines) != 3 || string(lines[0].Change) != `{"key":"a"}` || lines[1].Op != opWhole || lines[2].Op != opChanged || string(lines[2].Change) != `{"key":"b"}` {
			t.Errorf("told %+v", lines)
		}
		// Who heard of it tells it on, once, and for as long as if it was its own.
		for range 2 {
			for _, l := range lines {
				if l.Op == opChanged {
					other.table.heard(l.Change, time.Duration(l.Age)*time.Millisecond)
				}
			}
		}
		if told := other.table.recent.lines(); len(told) != 2 {
			t.Errorf("told on %+v", told)
		}
		time.Sleep(recentTime - time.Minute)
		if told := other.table.recent.lines(); len(told) != 1 || string(told[0].Change) != `{"key":"b"}` {
			t.Errorf("a while later told on %+v", told)
		}
		for i := range 2 * recentCount {
			other.table.heard(fmt.Appendf(nil, "%d", i), 0)
		}
		if told := other.table.recent.lines(); len(told) != recentCount || len(other.table.recent.known) != recentCount {
			t.Errorf("%d changes are kept, want %d", len(told), recentCount)
		}
		other.table.heard(bytes.Repeat([]byte("x"), recentBytes), 0)
		if told := other.table.recent.lines(); len(told) != 1 || other.table.recent.bytes != recentBytes {
			t.Errorf("%d changes of %d bytes are kept", len(told), other.table.recent.bytes)
		}
	})
	largest := line{Op: opChanged, Age: recentTime.Milliseconds(), Change: append(append([]byte(`"`), bytes.Repeat([]byte("x"), maxTold-2)...), '"')}
	if b, err := json.Marshal(largest); err != nil || len(b) >= maxLine {
		t.Errorf("the largest change makes a line of %d bytes, %v", len(b), err)
	}
}
