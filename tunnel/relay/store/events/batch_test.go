package events

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/wire"
)

func TestBatchesAreKeptCompressed(t *testing.T) {
	s := open(t, t.TempDir())
	batch := make([]wire.Access, MaxBatch)
	for i := range batch {
		batch[i] = wire.Access{Time: time.Unix(int64(i), 0).UTC(), Host: "shop.relay.test", Path: fmt.Sprintf("/page/%d", i), Status: 200}
	}
	if err := s.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Kept(t.Context())
	if err != nil || kept.Bytes == 0 || kept.Bytes > uint64(len(text))/3 {
		t.Errorf("%d bytes are kept of %d, %v; want a third at most", kept.Bytes, len(text), err)
	}
	got, err := s.Latest(t.Context(), MaxBatch)
	if err != nil || len(got) != MaxBatch || got[7].Path != batch[7].Path {
		t.Errorf("got %d events, %v", len(got), err)
	}
	info, err := s.stream.Info(t.Context())
	if err != nil || info.Config.Compression != jetstream.NoCompression {
		t.Errorf("the stream is compressed by %v, %v: a cluster whose servers are killed loses it", info.Config.Compression, err)
	}
}

func TestBatchIsRead(t *testing.T) {
	lines := []byte("{\"path\":\"/a\"}\n{\"path\":\"/b\"}\n")
	for name, c := range map[string]struct {
		encoding string
		data     []byte
		want     int // events; none: an error
	}{
		"compressed":         {encodingS2, s2.Encode(nil, lines), 2},
		"not compressed":     {"", lines, 2},
		"cut":                {encodingS2, s2.Encode(nil, lines)[:12], 0},
		"another encoding":   {"zip", lines, 0},
		"says to be large":   {encodingS2, []byte{0xff, 0xff, 0xff, 0x7f, 0, 'a'}, 0},
		"compressed rubbish": {encodingS2, s2.Encode(nil, []byte("no JSON")), 0},
	} {
		h := nats.Header{}
		if c.encoding != "" {
			h.Set(headerEncoding, c.encoding)
		}
		got, err := decodeBatch(h, c.data)
		if len(got) != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s: got %d events, %v; want %d", name, len(got), err, c.want)
		}
	}
}

// TestStoredEventsLiveThroughKill kills a process that stores access events, and looks for
// every batch that it reported as stored.
func TestStoredEventsLiveThroughKill(t *testing.T) {
	if dir := os.Getenv("ADIT_EVENTS_WRITER"); dir != "" {
		s := open(t, dir)
		for i := 0; ; i++ {
			noise := make([]byte, 64<<10) // does not compress
			for k := range noise {
				noise[k] = "abcdefghijklmnopqrstuvwxyz"[rand.IntN(26)]
			}
			id := fmt.Sprintf("%d-%d", os.Getpid(), i)
			if err := s.Append(t.Context(), []wire.Access{{Host: id, Path: string(noise)}}); err != nil {
				t.Fatal(err)
			}
			fmt.Println("stored", id)
		}
	}
	dir := t.TempDir()
	stored := map[string]bool{}
	for round := range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestStoredEventsLiveThroughKill$")
		cmd.Env = append(os.Environ(), "ADIT_EVENTS_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
				stored[id] = true
				if n++; n == 140+30*round {
					cmd.Process.Kill()
				}
			}
		}
		cmd.Wait()
		if n < 100 {
			t.Fatalf("the writer ended by itself after %d batches", n)
		}
		s := open(t, dir)
		found := 0
		if _, _, err := s.Walk(t.Context(), Scan{}, func(a *wire.Access) bool {
			if stored[a.Host] {
				found++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if found != len(stored) {
			t.Fatalf("after kill %d: %d of %d batches that were stored are there", round, found, len(stored))
		}
	}
}
