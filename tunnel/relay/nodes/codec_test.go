package nodes

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
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

// TestTableTellsWhatThereIs has a reader begin in the middle.
func TestTableTellsWhatThereIs(t *testing.T) {
	var tab table
	tab.agent(Agent{Session: "s1"})
	tab.agent(Agent{Session: "s2"})
	tab.up(Tunnel{Session: "s1", Key: "k"})
	tab.up(Tunnel{Session: "s9", Key: "nobody's"})
	tab.gone("s2")
	r := tab.follow()
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
	if got := strings.Join(ops, " "); !ok || got != "session tunnel whole withdrawn gone drain" {
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

// TestChangesAreToldToThoseWhoFollow holds that a change of the store goes to who
// follows the table now, whole, and that one larger than a line is left out.
func TestChangesAreToldToThoseWhoFollow(t *testing.T) {
	var m Mesh
	m.Tell([]byte(`{"early":1}`))
	r := m.table.follow()
	m.Tell([]byte(`{"key":"a"}`))
	m.Tell(append(append([]byte(`"`), bytes.Repeat([]byte("x"), maxTold)...), '"'))
	lines, _ := r.take()
	if len(lines) != 2 || lines[0].Op != opWhole || lines[1].Op != opChanged || string(lines[1].Change) != `{"key":"a"}` {
		t.Errorf("told %+v", lines)
	}
	largest := line{Op: opChanged, Change: append(append([]byte(`"`), bytes.Repeat([]byte("x"), maxTold-2)...), '"')}
	if b, err := json.Marshal(largest); err != nil || len(b) >= maxLine {
		t.Errorf("the largest change makes a line of %d bytes, %v", len(b), err)
	}
}
