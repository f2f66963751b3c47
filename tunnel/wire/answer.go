package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxReason is the longest reason that an Answer carries, in bytes.
const MaxReason = 512

const (
	answerConnected = 0
	answerRefused   = 1
)

// OriginError is an agent's report that it could not connect to the origin.
type OriginError struct{ Reason string }

func (e *OriginError) Error() string { return e.Reason }

// ErrAnswer is matched by every error about a malformed answer.
var ErrAnswer = errors.New("malformed answer")

// AppendAnswer appends the first bytes that the agent writes on a stream, after it has read
// the Preface and dialled the origin. If err is nil, that is the byte 0, and the origin's
// bytes follow. Otherwise it is the byte 1, the length of the reason (uint16, big endian) and
// the reason (UTF-8, cut to MaxReason), and the stream ends.
func AppendAnswer(b []byte, err error) []byte {
	if err == nil {
		return append(b, answerConnected)
	}
	reason := strings.ToValidUTF8(err.Error(), "?")
	for len(reason) > MaxReason {
		_, size := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-size]
	}
	b = append(b, answerRefused)
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	return append(b, reason...)
}

// ReadAnswer reads an answer, without consuming any bytes beyond it. It returns nil if the
// origin is connected, and an *OriginError with the agent's reason if it is not.
func ReadAnswer(r io.Reader) error {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	switch head[0] {
	case answerConnected:
		return nil
	case answerRefused:
	default:
		return fmt.Errorf("%w: status %d is not known", ErrAnswer, head[0])
	}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	size := binary.BigEndian.Uint16(head[1:])
	if size > MaxReason {
		return fmt.Errorf("%w: a reason of %d bytes", ErrAnswer, size)
	}
	reason := make([]byte, size)
	if _, err := io.ReadFull(r, reason); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	if !utf8.Valid(reason) {
		return fmt.Errorf("%w: the reason is not UTF-8", ErrAnswer)
	}
	return &OriginError{Reason: string(reason)}
}
