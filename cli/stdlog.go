package cli

import (
	"bytes"
	"io"
)

// Untold is a writer for the log of package log. It drops what net/http writes there
// of a far end that speaks unasked, as what another program at the daemon's address
// does: the error of the request says all that a person needs.
func Untold(w io.Writer) io.Writer { return untold{w} }

type untold struct{ io.Writer }

func (u untold) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(line), nil
	}
	return u.Writer.Write(line)
}
