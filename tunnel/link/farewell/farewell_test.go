package farewell

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, path string) *Book {
	t.Helper()
	b, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func words() map[ID]Word {
	return map[ID]Word{
		{1}: {To: netip.MustParseAddrPort("192.0.2.7:4000"), From: netip.MustParseAddr("198.51.100.1"), Record: []byte("one")},
		{2}: {To: netip.MustParseAddrPort("[2001:db8::7]:65535"), Record: bytes.Repeat([]byte{7}, MaxRecord)},
		{3}: {From: netip.MustParseAddr("2001:db8::1"), Record: []byte("nobody knows where")},
	}
}

// TestWordsAreLeft: what a process kept is there for the next one, as far as it was
// not dropped, and so on.
func TestWordsAreLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	b := open(t, path)
	if left := b.Left(); len(left) != 0 {
		t.Fatalf("a new file has %v", left)
	}
	want := words()
	for id, w := range want {
		b.Keep(id, Word{To: w.To, Record: []byte("an earlier one")})
		b.Keep(id, w)
	}
	b.Keep(ID{9}, Word{Record: make([]byte, MaxRecord+1)})
	b.Keep(ID{9}, Word{})
	b.Close()
	b.Keep(ID{9}, want[ID{1}])
	b.Drop(ID{1})
	b = open(t, path)
	if left := b.Left(); !reflect.DeepEqual(left, want) {
		t.Fatalf("left: %v, want %v", left, want)
	}
	b.Drop(ID{2})
	b.Drop(ID{8})
	delete(want, ID{2})
	want[ID{4}] = Word{To: netip.MustParseAddrPort("192.0.2.8:1"), Record: []byte("four")}
	b.Keep(ID{4}, want[ID{4}])
	b.Close()
	if info, err := os.Stat(path); err != nil || info.Size() != 3*slotSize || os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file: %v, %v; want three slots, for the owner alone", info, err)
	}
	b = open(t, path)
	if left := b.Left(); !reflect.DeepEqual(left, want) {
		t.Fatalf("left: %v, want %v", left, want)
	}
	for id := range want {
		b.Drop(id)
	}
	b.Close()
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file of no sessions: %v, %v", info, err)
	}
}

// TestADroppedWordIsNotLeft, wherever it was in the file, and another takes its place.
func TestADroppedWordIsNotLeft(t *testing.T) {
	for dropped := range words() {
		path := filepath.Join(t.TempDir(), File)
		b := open(t, path)
		want := words()
		for id, w := range want {
			b.Keep(id, w)
		}
		b.Drop(dropped)
		b.Close()
		delete(want, dropped)
		b = open(t, path)
		if left := b.Left(); !reflect.DeepEqual(left, want) {
			t.Fatalf("left: %v, want %v", left, want)
		}
		if left := b.Left(); len(left) != 0 {
			t.Errorf("who asks second is left %v, want none", left)
		}
		want[ID{4}] = Word{Record: []byte("four")}
		b.Keep(ID{4}, want[ID{4}])
		b.Close()
		if left := open(t, path).Left(); !reflect.DeepEqual(left, want) {
			t.Fatalf("with another in its place: left %v, want %v", left, want)
		}
	}
}

// TestAFullBookKeepsWhatItHas: a session more has no word until another's is dropped.
func TestAFullBookKeepsWhatItHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	b := open(t, path)
	b.Keep(ID{1}, Word{Record: []byte("an earlier one")})
	b.Keep(ID{2}, Word{Record: []byte("two")})
	b.next = maxSlots
	b.Keep(ID{3}, Word{Record: []byte("one more")})
	b.Keep(ID{1}, Word{Record: []byte("one")})
	b.Drop(ID{2})
	b.Keep(ID{4}, Word{Record: []byte("four")})
	b.Close()
	want := map[ID]Word{{1}: {Record: []byte("one")}, {4}: {Record: []byte("four")}}
	if left := open(t, path).Left(); !reflect.DeepEqual(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

// TestAZoneIsNotLeft: the next process may have another interface of that name.
func TestAZoneIsNotLeft(t *testing.T) {
	w := Word{To: netip.MustParseAddrPort("[fe80::7%eth0]:4000"), Record: []byte("one")}
	_, got, ok := decode(encode(ID{1}, w))
	if want := (Word{Record: w.Record}); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %t, want %v", got, ok, want)
	}
}

// TestWordsAreWrittenWithoutClose: a process that is killed has left what it kept.
func TestWordsAreWrittenWithoutClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	b := open(t, path)
	want := words()
	for id, w := range want {
		b.Keep(id, w)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		left := open(t, path).Left()
		if reflect.DeepEqual(left, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %v, want %v", left, want)
		}
	}
}

// TestDamagedWordsAreNone: a slot with any byte changed is an empty one, and is used again.
func TestDamagedWordsAreNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	id, w := ID{1}, words()[ID{1}]
	whole := encode(id, w)
	for at := range slotSize {
		harmed := whole
		harmed[at] ^= 0x10
		if err := os.WriteFile(path, append(harmed[:], whole[:100]...), 0o600); err != nil {
			t.Fatal(err)
		}
		b := open(t, path)
		if left := b.Left(); len(left) != 0 {
			t.Fatalf("byte %d changed: left %v", at, left)
		}
		b.Keep(id, w)
		b.Close()
		b = open(t, path)
		if left := b.Left(); !reflect.DeepEqual(left, map[ID]Word{id: w}) {
			t.Fatalf("byte %d changed, and written anew: left %v", at, left)
		}
		b.Close()
	}
}

// TestAFullDiskIsToldOnce: words are lost, and somebody is told.
func TestAFullDiskIsToldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	var told bytes.Buffer
	b, err := Open(path, slog.New(slog.NewTextHandler(&told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	b.file.Close()
	for id, w := range words() {
		b.Keep(id, w)
	}
	b.Close()
	if n := strings.Count(told.String(), "farewells cannot be written"); n != 1 {
		t.Errorf("told %d times: %s", n, told.String())
	}
}

func FuzzDecode(f *testing.F) {
	for id, w := range words() {
		s := encode(id, w)
		f.Add(s[:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < slotSize {
			return
		}
		id, w, ok := decode([slotSize]byte(data))
		if !ok {
			return
		}
		again, word, ok := decode(encode(id, w))
		if !ok || again != id || !reflect.DeepEqual(word, w) {
			t.Fatalf("%v, %v became %v, %v", id, w, again, word)
		}
	})
}
