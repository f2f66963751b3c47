package cli

import (
	"bytes"
	"io"
)

// Untold returns a writer for the log of package log. It drops what net/http logs about a peer that
// sends unsolicited data, such as another program at the daemon's address: the request's error says
// everything that the user needs.
func Untold(w io.Writer) io.Writer { return untold{w} }

type untold struct{ io.Writer }

func (u untold) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(line), nil
	}
	return u.Writer.Write(line)
}
