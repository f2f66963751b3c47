package mux

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// records is a connection that gives a record a read, as TLS does, or as much of
// one as there is room for.
type records struct {
	list [][]byte
	end  error
}

func (r *records) Read(b []byte) (int, error) {
	if len(r.list) == 0 {
		return 0, r.end
	}
	n := copy(b, r.list[0])
	if r.list[0] = r.list[0][n:]; len(r.list[0]) == 0 {
		r.list = r.list[1:]
	}
	return n, nil
}

func noise(size int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// ready is such a connection that has all of them there.
type ready struct{ *records }

func (r ready) ReadNow(b []byte) (int, error) {
	if len(r.list) == 0 {
		return 0, nil
	}
	return r.Read(b)
}

// TestWholeRecordsAreKept: in bulk what a frame has is the stream's as it lies.
func TestWholeRecordsAreKept(t *testing.T) {
	for _, size := range []int{chunkSize, bulkSize} {
		src := &records{end: io.EOF}
		var all []byte
		const frames = 4
		for range 1 + frames*size/chunkSize {
			b := noise(chunkSize)
			all = append(all, b...)
			src.list = append(src.list, bytes.Clone(b))
		}
		var conn io.Reader = src
		if size == bulkSize {
			conn = ready{src}
		}
		in := newInbound(conn)
		if err := in.Discard(chunkSize); err != nil { // the first one shows that it is bulk
			t.Fatal(err)
		}
		in.size = size
		var kept []chunk
		for range frames {
			if b, err := in.Next(headerSize); len(b) != headerSize || err != nil {
				t.Fatalf("a header: %d bytes, %v", len(b), err)
			}
			b, err := in.Next(size - headerSize)
			if len(b) != size-headerSize || err != nil {
				t.Fatalf("a body: %d bytes, %v", len(b), err)
			}
			c, ok := in.Keep(b[100:]) // a reader took the rest
			if !ok {
				t.Fatal("a whole frame was not kept")
			}
			kept = append(kept, c)
			in.size = size
		}
		for i, c := range kept {
			if want := all[chunkSize+i*size:][headerSize+100 : size]; !bytes.Equal(c.mem[c.from:c.to], want) {
				t.Errorf("chunk %d of %d is not what came", i, size)
			}
		}
	}
}

// TestLittleIsNotKept: a chunk is no memory for a few bytes, and what is read
// next to them is not theirs.
func TestLittleIsNotKept(t *testing.T) {
	src := &records{list: [][]byte{noise(chunkSize), noise(chunkSize), noise(50), noise(60)}, end: io.EOF}
	in := newInbound(src)
	if b, err := in.Next(smallRead); err != nil {
		t.Fatal(err)
	} else if _, ok := in.Keep(b); ok {
		t.Error("the small buffer was given away")
	}
	in.Discard(chunkSize - smallRead)
	if b, err := in.Next(chunkSize - 1); err != nil {
		t.Fatal(err)
	} else if _, ok := in.Keep(b); ok {
		t.Error("a chunk was given away with more in it")
	}
	in.Discard(1)
	if b, err := in.Next(chunkSize); len(b) != 50 || err != nil {
		t.Fatalf("got %d bytes, %v", len(b), err)
	} else if _, ok := in.Keep(b); ok {
		t.Error("a chunk was given away for 50 bytes")
	}
	if b, err := in.Next(chunkSize); len(b) != 60 || err != nil {
		t.Fatalf("got %d bytes, %v", len(b), err)
	}
	if _, err := in.Next(1); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if in.mem != nil {
		t.Error("it waits with a chunk where little comes")
	}
}

// TestInboundGivesAllInOrder reads by parts as chance wills.
func TestInboundGivesAllInOrder(t *testing.T) {
	for _, now := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(5, 6))
		broken := errors.New("broken")
		src := &records{end: broken}
		var want []byte
		for range 300 {
			b := noise(1 + rng.IntN(2*chunkSize))
			want = append(want, b...)
			src.list = append(src.list, bytes.Clone(b))
		}
		var conn io.Reader = src
		if now {
			conn = ready{src}
		}
		in := newInbound(conn)
		var parts []chunk
		var got []byte
		keeps := 0
		flush := func() {
			for _, c := range parts {
				got = append(got, c.mem[c.from:c.to]...)
				giveMemory(c.mem)
			}
			parts = nil
		}
		for {
			b, err := in.Next(1 + rng.IntN(2*bulkSize))
			if err != nil {
				if !errors.Is(err, broken) {
					t.Fatal(err)
				}
				break
			}
			if c, ok := in.Keep(b); ok {
				parts = append(parts, c) // read later
				keeps++
				continue
			}
			flush()
			got = append(got, b...)
		}
		flush()
		if !bytes.Equal(got, want) {
			t.Errorf("got %d bytes that differ from the %d that came", len(got), len(want))
		}
		if keeps == 0 {
			t.Error("nothing was kept: the test shows little")
		}
	}
}

type neverReads struct{}

func (neverReads) Read([]byte) (int, error) { return 0, nil }

func TestConnectionWithoutProgress(t *testing.T) {
	in := newInbound(neverReads{})
	if _, err := in.Next(1); err != io.ErrNoProgress {
		t.Errorf("got %v", err)
	}
}

// TestBulkLeavesInRecords: a frame and its header fill TLS records, so
// that who reads it need not copy it once more.
func TestBulkLeavesInRecords(t *testing.T) {
	a, b := tcpPair(t)
	s := New(a, config(true))
	defer s.Close("test over")
	st, err := s.OpenStream(within(t))
	if err != nil {
		t.Fatal(err)
	}
	st.Write([]byte("x"))
	const size = initialWindow - 1
	wrote := make(chan error, 1)
	go func() { _, err := st.Write(make([]byte, size)); wrote <- err }()
	whole := 0
	for got := 0; got < size; {
		var raw [headerSize]byte
		if _, err := io.ReadFull(b, raw[:]); err != nil {
			t.Fatal(err)
		}
		h := parseHeader(raw[:])
		if h.kind != typeData || h.id == controlID {
			continue
		}
		if _, err := io.CopyN(io.Discard, b, int64(h.length)); err != nil {
			t.Fatal(err)
		}
		if h.length > 1 {
			got += int(h.length)
		}
		if (h.length+headerSize)%chunkSize == 0 {
			whole += (int(h.length) + headerSize) / chunkSize
		}
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if want := size/chunkSize - 1; whole < want { // headers, and the end, take the rest
		t.Errorf("%d records are filled by frames, want %d", whole, want)
	}
}
