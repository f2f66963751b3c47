package nodes

import (
	"errors"
	"fmt"
	"io"
)

// The first byte of a stream between nodes.
const (
	streamVisitor = 1 // followed by the session's id, then by what is sent to the agent
	streamControl = 2 // followed by HTTP/1.1
)

// notHere is sent on a visitor's stream instead of the agent's answer, which begins with
// a different byte (wire.AppendAnswer).
const notHere = 0xFF

// maxID is the length of the longest session id, in bytes.
const maxID = 64

// errHead is matched by errors about a stream or datagram whose header cannot be parsed.
var errHead = errors.New("malformed header between nodes")

// appendSession appends a session's id: its length (1 byte) and the id.
func appendSession(b []byte, id string) []byte {
	b = append(b, byte(len(id)))
	return append(b, id...)
}

// readSession reads an id, and not one byte more.
func readSession(r io.Reader) (string, error) {
	var buf [1 + maxID]byte
	if _, err := io.ReadFull(r, buf[:1]); err != nil {
		return "", fmt.Errorf("read session id: %w", err)
	}
	n := int(buf[0])
	if n == 0 || n > maxID {
		return "", fmt.Errorf("%w: a session id of %d bytes", errHead, n)
	}
	if _, err := io.ReadFull(r, buf[1:1+n]); err != nil {
		return "", fmt.Errorf("read session id: %w", err)
	}
	return string(buf[1 : 1+n]), nil
}

// cutSession splits a datagram into the session's id and the rest. Both alias b.
func cutSession(b []byte) (id, rest []byte, err error) {
	if len(b) < 2 || b[0] == 0 || int(b[0]) > maxID || len(b) < 1+int(b[0]) {
		return nil, nil, fmt.Errorf("%w: a datagram of %d bytes", errHead, len(b))
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], nil
}
