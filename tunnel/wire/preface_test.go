package wire

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrefaceComesBackAndTakesNoMore(t *testing.T) {
	for _, c := range prefaces {
		t.Run(c.name, func(t *testing.T) {
			b, err := AppendPreface(nil, c.preface)
			if err != nil {
				t.Fatal(err)
			}
			r := bytes.NewReader(append(b, "payload"...))
			got, err := ReadPreface(r)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.preface {
				t.Errorf("got %+v, want %+v", got, c.preface)
			}
			if rest, _ := io.ReadAll(r); string(rest) != "payload" {
				t.Errorf("left %q, want the payload", rest)
			}
		})
	}
}

func TestPrefaceOfMixedFamilies(t *testing.T) {
	p := Preface{
		Visitor: netip.MustParseAddrPort("203.0.113.9:4000"), Edge: netip.MustParseAddrPort("[2001:db8::1]:443"),
		Kind: StreamRaw,
	}
	b, err := AppendPreface(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadPreface(bytes.NewReader(b))
	if err != nil || got != p {
		t.Errorf("got %+v, %v; want %+v", got, err, p)
	}
	b, err = AppendPreface(nil, Preface{Kind: StreamHTTP})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPreface(bytes.NewReader(b)); err != nil || got.Visitor.String() != "0.0.0.0:0" {
		t.Errorf("without addresses: got %+v, %v", got, err)
	}
}

func TestPrefaceRefused(t *testing.T) {
	good, err := AppendPreface(nil, prefaces[0].preface)
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	for name, b := range map[string][]byte{
		"another signature": change(func(b []byte) []byte { b[0] = 'G'; return b }),
		"version 1 text":    []byte("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\n"),
		"too long":          change(func(b []byte) []byte { b[14], b[15] = 0xff, 0xff; return b }),
		"local command":     change(func(b []byte) []byte { b[12] = 0x20; return b }),
		"udp family":        change(func(b []byte) []byte { b[13] = 0x12; return b }),
		"unknown kind":      change(func(b []byte) []byte { b[len(b)-1] = 9; return b }),
		"no kind":           change(func(b []byte) []byte { b[len(b)-4] = 0xEE; return b }),
		"no endpoint":       change(func(b []byte) []byte { b[len(b)-11] = 0xEE; return b }),
	} {
		if _, err := ReadPreface(bytes.NewReader(b)); !errors.Is(err, ErrPreface) {
			t.Errorf("%s: got %v, want ErrPreface", name, err)
		}
	}
	for n := range len(good) {
		if _, err := ReadPreface(bytes.NewReader(good[:n])); err == nil {
			t.Errorf("%d of %d bytes: no error", n, len(good))
		}
	}
}

func TestAnswerCutsItsReason(t *testing.T) {
	err := ReadAnswer(bytes.NewReader(AppendAnswer(nil, errors.New(strings.Repeat("语", 400)+"\xff"))))
	var origin *OriginError
	if !errors.As(err, &origin) {
		t.Fatalf("got %v, want an OriginError", err)
	}
	if len(origin.Reason) > MaxReason || len(origin.Reason) < MaxReason-3 || !utf8.ValidString(origin.Reason) {
		t.Errorf("got a reason of %d bytes, want at most %d of whole characters", len(origin.Reason), MaxReason)
	}
}

// TestAnswersOfNoAgent uses answers that the agent never writes.
func TestAnswersOfNoAgent(t *testing.T) {
	refused := func(reason string) []byte {
		return append([]byte{answerRefused, byte(len(reason) >> 8), byte(len(reason))}, reason...)
	}
	for name, b := range map[string][]byte{
		"unknown status": {9}, "not UTF-8": refused("\xff"), "too long": refused(strings.Repeat("x", MaxReason+1)),
	} {
		if err := ReadAnswer(bytes.NewReader(b)); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: got %v, want ErrAnswer", name, err)
		}
	}
	for n, whole := 0, refused("why"); n < len(whole); n++ {
		var origin *OriginError
		if err := ReadAnswer(bytes.NewReader(whole[:n])); err == nil || errors.As(err, &origin) {
			t.Errorf("%d of %d bytes: got %v", n, len(whole), err)
		}
	}
}

func FuzzReadPreface(f *testing.F) {
	for _, c := range prefaces {
		b, _ := AppendPreface(nil, c.preface)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadPreface(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := AppendPreface(nil, p)
		if err != nil {
			t.Fatalf("%+v does not go out again: %v", p, err)
		}
		q, err := ReadPreface(bytes.NewReader(again))
		if err != nil || q != p {
			t.Fatalf("got %+v, %v; want %+v", q, err, p)
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(AppendAnswer(nil, nil))
	f.Add(AppendAnswer(nil, errors.New("refused")))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := ReadAnswer(bytes.NewReader(b))
		var origin *OriginError
		if errors.As(err, &origin) {
			if out := AppendAnswer(nil, err); !bytes.HasPrefix(b, out) {
				t.Fatalf("%x read as %q goes out as %x", b, origin.Reason, out)
			}
		}
	})
}
