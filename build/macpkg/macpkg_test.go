package macpkg

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"
)

var when = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func sample() Tree {
	return NewTree([]File{
		{Path: "Applications/A.app/Contents/MacOS/a", Mode: 0o755, GID: 80, Data: []byte("program")},
		{Path: "Library/LaunchDaemons/a.plist", Mode: 0o644, Data: []byte("<plist/>")},
	})
}

func TestTreeHasEveryFolderOnceAndBeforeItsContent(t *testing.T) {
	seen := map[string]bool{".": true}
	for _, f := range sample() {
		parent := "."
		for i := len(f.Path) - 1; i > 0; i-- {
			if f.Path[i] == '/' {
				parent = f.Path[:i]
				break
			}
		}
		if !seen[parent] || seen[f.Path] {
			t.Errorf("%s: its folder is not before it, or it is given twice", f.Path)
		}
		seen[f.Path] = true
		if want := map[string]uint32{"Library": 0, "Library/LaunchDaemons": 0, "Applications": 80, "Applications/A.app": 80}[f.Path]; f.Dir && f.GID != want && f.Path[0] == 'L' {
			t.Errorf("%s: got group %d, want %d", f.Path, f.GID, want)
		}
	}
	if len(seen) != 9 {
		t.Errorf("got %d paths: %v", len(seen), seen)
	}
}

func TestArchiveIsReadBack(t *testing.T) {
	packed, err := sample().Archive(when, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	octal := func(at, n int) int {
		v, err := strconv.ParseUint(string(raw[at:at+n]), 8, 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(v)
	}
	for len(raw) > 0 {
		if string(raw[:6]) != "070707" {
			t.Fatalf("entry %d does not begin with the magic number", len(names))
		}
		name, size := octal(59, 6), octal(65, 11)
		names = append(names, fmt.Sprintf("%s %o %d", raw[76:76+name-1], octal(18, 6), octal(30, 6)))
		raw = raw[76+name+size:]
	}
	if len(names) != len(sample())+2 || names[0] != ". 40755 80" || names[len(names)-1] != "TRAILER!!! 0 0" {
		t.Errorf("got %q", names)
	}
}

func TestXarsTableIsWhatItsChecksumSays(t *testing.T) {
	archive, err := Xar([]Member{{Name: "a & b", Data: []byte("hello")}, {Name: "dir", Members: []Member{{Name: "c", Data: []byte("world")}}}}, when)
	if err != nil {
		t.Fatal(err)
	}
	if string(archive[:4]) != "xar!" || binary.BigEndian.Uint16(archive[4:]) != 28 {
		t.Fatalf("got header % x", archive[:28])
	}
	size := int(binary.BigEndian.Uint64(archive[8:]))
	table, heap := archive[28:28+size], archive[28+size:]
	if sum := sha1.Sum(table); !bytes.Equal(sum[:], heap[:20]) {
		t.Error("the heap does not begin with the table's checksum")
	}
	zr, err := zlib.NewReader(bytes.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	var toc struct {
		Files []struct {
			Name   string `xml:"name"`
			Length int    `xml:"data>length"`
			Offset int    `xml:"data>offset"`
		} `xml:"toc>file"`
	}
	if err := xml.NewDecoder(zr).Decode(&toc); err != nil {
		t.Fatal(err)
	}
	if f := toc.Files[0]; f.Name != "a & b" || string(heap[f.Offset:f.Offset+f.Length]) != "hello" {
		t.Errorf("got %+v", f)
	}
}

func TestBOMListsThePathsWithTheirChecksums(t *testing.T) {
	tree := sample()
	store, err := tree.BOM(Seconds(when.Unix()))
	if err != nil {
		t.Fatal(err)
	}
	read := func(at uint32) uint32 { return binary.BigEndian.Uint32(store[at:]) }
	index := read(16)
	block := func(n uint32) []byte {
		at := index + 4 + n*8
		return store[read(at) : read(at)+read(at+4)]
	}
	vars, names := read(24), map[string]uint32{}
	for at, i := vars+4, uint32(0); i < read(vars); i++ {
		length := uint32(store[at+4])
		names[string(store[at+5:at+5+length])] = read(at)
		at += 5 + length
	}
	if len(names) != 5 || names["Paths"] == 0 {
		t.Fatalf("got variables %v", names)
	}
	head := block(names["Paths"])
	leaf := block(binary.BigEndian.Uint32(head[8:]))
	if got, want := int(binary.BigEndian.Uint16(leaf[2:])), len(tree)+1; got != want {
		t.Fatalf("got %d paths, want %d", got, want)
	}
	for i, f := range tree {
		at := 12 + (i+1)*8
		value, key := block(binary.BigEndian.Uint32(leaf[at:])), block(binary.BigEndian.Uint32(leaf[at+4:]))
		details := block(binary.BigEndian.Uint32(value[4:]))
		if name := string(key[4 : len(key)-1]); len(f.Path) < len(name) || f.Path[len(f.Path)-len(name):] != name {
			t.Errorf("path %d: got name %q, want that of %s", i, name, f.Path)
		}
		if mode := binary.BigEndian.Uint16(details[4:]); uint32(mode) != f.mode() {
			t.Errorf("%s: got mode %o", f.Path, mode)
		}
	}
}

func TestCksumIsThatOfPOSIX(t *testing.T) {
	for text, want := range map[string]uint32{"": 4294967295, "hello\n": 3015617425, "123456789": 930766865} {
		if got := cksum([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestUniversalRefusesWhatIsNoProgram(t *testing.T) {
	if _, err := Universal([]byte("no program")); err == nil {
		t.Error("text was joined")
	}
	if _, err := Universal(); err == nil {
		t.Error("nothing was joined")
	}
}
