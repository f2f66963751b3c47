package record

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pion/dtls/v3/pkg/crypto/ciphersuite"
	"github.com/pion/dtls/v3/pkg/crypto/prf"
	"github.com/pion/dtls/v3/pkg/protocol"
	"github.com/pion/dtls/v3/pkg/protocol/recordlayer"
)

var update = flag.Bool("update", false, "write the golden files anew")

// numbered are bytes that count from start.
func numbered(start, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(start + i)
	}
	return b
}

func testHalves(t testing.TB, s Suite, cid []byte) (seal, open *half) {
	t.Helper()
	for _, h := range []**half{&seal, &open} {
		toServer, _, err := deriveHalves(s, numbered(0, 48), numbered(0x40, 32), numbered(0x80, 32), nil, cid)
		if err != nil {
			t.Fatal(err)
		}
		*h = toServer
	}
	return seal, open
}

func sealed(h *half, typ byte, seq uint64, plain string) []byte {
	p := make([]byte, h.head+len(plain)+h.tail)
	copy(p[h.head:], plain)
	h.seal(p, typ, seq)
	return p
}

func TestSealedRecordsAreAsEver(t *testing.T) {
	var out strings.Builder
	for _, suite := range []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305} {
		for _, cid := range [][]byte{nil, numbered(0xc0, cidSize)} {
			for _, plain := range []string{"", "adit"} {
				h, open := testHalves(t, suite, cid)
				p := sealed(h, typeApplication, epoch1|base|5, plain)
				fmt.Fprintf(&out, "%v cid=%x plain=%q\n%s\n", suite, cid, plain, hex.EncodeToString(p))
				r, rest, ok := parse(p, len(cid))
				if !ok || len(rest) != 0 {
					t.Fatal("the record is not understood")
				}
				got, typ, ok := open.open(r)
				if !ok || string(got) != plain || typ != typeApplication {
					t.Errorf("%v: opened %q of type %d, %v", suite, got, typ, ok)
				}
			}
		}
	}
	path := filepath.Join("testdata", "records.golden")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestPionOpensWhatWeSeal holds our layout against another implementation's.
func TestPionOpensWhatWeSeal(t *testing.T) {
	cid := numbered(0xc0, cidSize)
	for _, suite := range []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305} {
		for _, id := range [][]byte{nil, cid} {
			sh, _ := suite.shape()
			keys, err := prf.GenerateEncryptionKeys(numbered(0, 48), numbered(0x40, 32), numbered(0x80, 32), 0, sh.key, sh.iv, sh.hash)
			if err != nil {
				t.Fatal(err)
			}
			var peer interface {
				Decrypt(recordlayer.Header, []byte) ([]byte, error)
				Encrypt(*recordlayer.RecordLayer, []byte) ([]byte, error)
			}
			if suite == ChaCha20Poly1305 {
				peer, err = ciphersuite.NewChaCha20Poly1305(keys.ServerWriteKey, keys.ServerWriteIV, keys.ClientWriteKey, keys.ClientWriteIV)
			} else {
				peer, err = ciphersuite.NewGCM(keys.ServerWriteKey, keys.ServerWriteIV, keys.ClientWriteKey, keys.ClientWriteIV)
			}
			if err != nil {
				t.Fatal(err)
			}
			h, _ := testHalves(t, suite, id)
			plain := "what pion shall read"
			var hdr recordlayer.Header
			if id != nil {
				hdr.ConnectionID = make([]byte, len(id))
			}
			got, err := peer.Decrypt(hdr, sealed(h, typeApplication, epoch1|77, plain))
			if err != nil {
				t.Fatalf("%v: %v", suite, err)
			}
			want := plain
			if id != nil {
				want += string(byte(protocol.ContentTypeApplicationData))
			}
			if !bytes.HasSuffix(got, []byte(want)) {
				t.Errorf("%v: pion read %q", suite, got)
			}
		}
	}
}

func TestPaddedRecordIsRead(t *testing.T) {
	h, open := testHalves(t, AES128GCM, numbered(1, cidSize))
	// The type byte is content here, and what seal adds is the padding.
	p := make([]byte, h.head+5+h.tail)
	copy(p[h.head:], "data\x17")
	h.seal(p, 0, epoch1|3)
	r, _, _ := parse(p, cidSize)
	if got, typ, ok := open.open(r); !ok || string(got) != "data" || typ != typeApplication {
		t.Errorf("got %q, type %d, %v", got, typ, ok)
	}
	p = make([]byte, h.head+h.tail)
	h.seal(p, 0, epoch1|4) // nothing but padding has no type
	r, _, _ = parse(p, cidSize)
	if _, _, ok := open.open(r); ok {
		t.Error("a record without a type was opened")
	}
}

func TestWindowTakesEachNumberOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, start := range []uint64{0, 1, 63, 64, 4095, 4096, base, base + 17} {
		var w window
		seen := map[uint64]bool{}
		top := start
		for range 200_000 {
			var n uint64
			switch rng.IntN(10) {
			case 0:
				n = top + uint64(rng.IntN(3*windowSize)) // a jump
			case 1, 2, 3:
				n = top + 1
			default:
				n = top - min(top, uint64(rng.IntN(windowSize+200)))
			}
			fresh := w.fresh(n)
			if fresh && seen[n] {
				t.Fatalf("start %d: %d is taken twice, newest %d", start, n, top)
			}
			if !fresh && !seen[n] && len(seen) > 0 && top-n < windowSize && n < top {
				t.Fatalf("start %d: %d is refused, newest %d", start, n, top)
			}
			if fresh {
				if newest := w.mark(n); newest != (n > top || len(seen) == 0) {
					t.Fatalf("mark(%d) says newest %v with %d before", n, newest, top)
				}
				seen[n] = true
				top = max(top, n)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	h, _ := testHalves(f, AES128GCM, numbered(1, cidSize))
	f.Add(sealed(h, typeApplication, epoch1|base, "data"), cidSize)
	f.Add(sealed(h, typeAlert, epoch1|base, "\x01\x00"), 0)
	f.Add([]byte{22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, 0)
	f.Fuzz(func(t *testing.T, p []byte, cid int) {
		if cid < 0 || cid > 255 {
			return
		}
		total := 0
		for rest, ok := p, true; ok; {
			var r rawRecord
			before := len(rest)
			if r, rest, ok = parse(rest, cid); !ok {
				break
			}
			if len(r.whole) < headerSize || len(r.whole)+len(rest) != before || len(r.body) > len(r.whole)-headerSize {
				t.Fatalf("a record of %d bytes, body %d, rest %d, of %d", len(r.whole), len(r.body), len(rest), before)
			}
			total += len(r.whole)
			for _, suite := range []Suite{AES128GCM, ChaCha20Poly1305} {
				for _, id := range [][]byte{nil, r.cid} {
					_, open := testHalves(t, suite, id)
					r := r
					r.body = bytes.Clone(r.body)
					open.open(r) // whatever it is, no panic
				}
			}
		}
		if total > len(p) {
			t.Fatal("more records than bytes")
		}
	})
}

func FuzzHello(f *testing.F) {
	hello := append([]byte{22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x34, 1, 0, 0, 0x28, 0, 1, 0, 0, 0, 0, 0, 0x28, 0xfe, 0xfd}, make([]byte, 38)...)
	f.Add(hello)
	f.Fuzz(func(t *testing.T, p []byte) {
		h, ok := parseHello(p)
		if !ok {
			return
		}
		if len(h.random) != 32 || h.at+1+len(h.cookie) > len(p) {
			t.Fatalf("%+v of %d bytes", h, len(p))
		}
		again, ok := parseHello(h.withoutCookie(p))
		if !ok || len(again.cookie) != 0 || again.message != 0 || again.seq != 0 || !bytes.Equal(again.random, h.random) {
			t.Fatalf("without its cookie it is %+v, %v", again, ok)
		}
	})
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		server bool
		want   string
	}{
		"no certificate": {Config{}, true, "certificates"},
		"no trust":       {Config{}, false, "verify_peer"},
		"strange suite":  {Config{VerifyPeer: trustTest, Suites: []Suite{0xc009}}, false, "suites"},
	} {
		if _, err := c.cfg.filled(c.server); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
	}
}
