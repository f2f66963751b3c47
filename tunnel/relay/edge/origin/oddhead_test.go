package origin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// said is a stream that an agent and its origin have said something on.
type said struct {
	link.Stream
	*strings.Reader
}

func (s said) Read(b []byte) (int, error) { return s.Reader.Read(b) }
func (said) Close() error                 { return nil }
func (said) Reset()                       {}

// TestLongOddHeadIsReadInOneGo checks that reading an odd head takes only a few times as long
// as reading a regular one, however many lines it has.
func TestLongOddHeadIsReadInOneGo(t *testing.T) {
	lines := strings.Repeat("a: "+strings.Repeat("x", maxAnswerHead/maxAnswerLines-8)+"\n", maxAnswerLines-8)
	read := func(first string) time.Duration {
		conn := &Conn{Stream: said{Reader: strings.NewReader(string(wire.AppendAnswer(nil, nil)) + "HTTP/1.1 200 OK\n" + first + lines + "\n")}, done: make(chan struct{})}
		s := newStream(conn, new(idleStreams))
		defer s.Close()
		s.begin()
		begun := time.Now()
		if _, err := s.Answer(new(http.Request)); err != nil {
			t.Fatal(err)
		}
		return time.Since(begun)
	}
	plain := min(read("b:\n"), read("b:\n"))
	if odd := min(read("odd\n"), read("odd\n")); odd > 12*plain {
		t.Errorf("it takes %v, and one that is not odd %v", odd, plain)
	}
}

// TestHeadOfVeryManyLinesIsRefused limits the number of lines, since each takes many times as
// much memory as it has bytes. What follows a head does not count.
func TestHeadOfVeryManyLinesIsRefused(t *testing.T) {
	trailers := func(n int) string {
		var names strings.Builder
		for i := range n {
			fmt.Fprintf(&names, "t%d,", i)
		}
		return "Transfer-Encoding: chunked\nTrailer: " + strings.TrimSuffix(names.String(), ",") + "\n\n0\r\n\r\n"
	}
	for name, c := range map[string]struct {
		said    string
		refused bool
	}{
		"trailers":               {trailers(maxAnswerTrailers), false},
		"more of them than that": {trailers(5000), true},
		"lines":                  {strings.Repeat("a:\n", maxAnswerLines-8) + "\n", false},
		"more of them":           {strings.Repeat("a:\n", 2*maxAnswerLines) + "\n", true},
		"more, and some odd":     {strings.Repeat("odd\na:\n", maxAnswerLines) + "\n", true},
		"a body of many":         {"a:\n\n" + strings.Repeat("\n", 8*maxAnswerLines), false},
		"... behind an odd head": {"odd\na:\n\n" + strings.Repeat("\n", 8*maxAnswerLines), false},
		"a length that is long":  {"a: " + strings.Repeat("x", maxAnswerHead) + "\n\n", true},
		"... and within bounds":  {"a: " + strings.Repeat("x", maxAnswerHead/2) + "\n\n", false},
		"one that does not end":  {strings.Repeat("a:\n", 8*maxAnswerLines), true},
		"... and nothing behind": {"a:\n\n", false},
	} {
		conn := &Conn{Stream: said{Reader: strings.NewReader(string(wire.AppendAnswer(nil, nil)) + "HTTP/1.1 200 OK\n" + c.said)}, done: make(chan struct{})}
		s := newStream(conn, new(idleStreams))
		s.begin()
		answer, err := s.Answer(new(http.Request))
		if errors.Is(err, errHeadTooLarge) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			if _, err := io.Copy(io.Discard, answer.Body); err != nil {
				t.Errorf("%s: the body: %v", name, err)
			}
		}
		s.Close()
	}
}

// FuzzMended checks that a mended head needs no further mending, ends only once, and says no
// more about the body's length than the origin did.
func FuzzMended(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n no\r\nX: y\r\n z\r\nbad\r\n\r\n")
	f.Add("ICY 200 OK\nTransfer-Encoding: chunked\nTransfer-Encoding: identity, chunked\n\n")
	f.Add("HTTP/1.1 200\r\ncontent-length: 1\r\nContent-Length: -1\r\nContent-Length: 3\r\nX: a\x00\r\n\r\n")
	f.Fuzz(func(t *testing.T, head string) {
		got := mended(head)
		if again := mended(got); again != got {
			t.Errorf("%q became %q, and that %q", head, got, again)
		}
		if end, _ := headEnd([]byte(got), 0); end != len(got) && !strings.HasPrefix(got, "\r\n") {
			t.Errorf("%q became %q, which ends elsewhere", head, got)
		}
		if strings.Count(got, "Content-Length:") > strings.Count(strings.ToLower(head), "content-length")+strings.Count(head, ",") {
			t.Errorf("%q became %q, which has more lengths", head, got)
		}
	})
}
