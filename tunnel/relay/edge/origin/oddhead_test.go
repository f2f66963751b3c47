package origin

import (
	"strings"
	"testing"
)

// FuzzMended holds that a head that was mended has nothing left to mend, ends once and
// says no more of the body's length than the origin did.
func FuzzMended(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n no\r\nX: y\r\n z\r\nbad\r\n\r\n")
	f.Add("ICY 200 OK\nTransfer-Encoding: chunked\nTransfer-Encoding: identity, chunked\n\n")
	f.Add("HTTP/1.1 200\r\ncontent-length: 1\r\nContent-Length: -1\r\nContent-Length: 3\r\nX: a\x00\r\n\r\n")
	f.Fuzz(func(t *testing.T, head string) {
		got := mended(head)
		if again := mended(got); again != got {
			t.Errorf("%q became %q, and that %q", head, got, again)
		}
		if headEnd([]byte(got)) != len(got) && !strings.HasPrefix(got, "\r\n") {
			t.Errorf("%q became %q, which ends elsewhere", head, got)
		}
		if strings.Count(got, "Content-Length:") > strings.Count(strings.ToLower(head), "content-length")+strings.Count(head, ",") {
			t.Errorf("%q became %q, which has more lengths", head, got)
		}
	})
}
