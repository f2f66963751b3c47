package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"

	"adit/tunnel/wire"
)

const (
	// MaxBatch is the most access events that one stored message holds. Events are written in
	// batches because waiting for the disk is expensive.
	MaxBatch = 512
	// The times of a batch's first and last event, in Unix nanoseconds.
	headerFrom = "Adit-From"
	headerTo   = "Adit-To"
	// The compression of a batch, named as in
	// https://pkg.go.dev/github.com/klauspost/compress/s2; without this header, the batch is
	// not compressed. The store's own compression is not used, because it loses the stream if
	// servers of a cluster are killed (decision 6).
	headerEncoding = "Adit-Encoding"
	encodingS2     = "s2"
	maxBatchBytes  = 64 << 20 // of a batch as JSON
)

// encodeBatch returns the message that stores access events, of which there must be at least
// one: a JSON object and a line feed for each, compressed.
func encodeBatch(batch []wire.Access) (*nats.Msg, error) {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	from, to := batch[0].Time, batch[0].Time
	for i := range batch {
		if err := enc.Encode(&batch[i]); err != nil {
			return nil, err
		}
		if t := batch[i].Time; t.Before(from) {
			from = t
		} else if t.After(to) {
			to = t
		}
	}
	msg := nats.NewMsg(subject)
	msg.Data = s2.Encode(nil, lines.Bytes())
	msg.Header.Set(headerEncoding, encodingS2)
	msg.Header.Set(headerFrom, strconv.FormatInt(from.UnixNano(), 10))
	msg.Header.Set(headerTo, strconv.FormatInt(to.UnixNano(), 10))
	return msg, nil
}

func decodeBatch(h nats.Header, data []byte) ([]wire.Access, error) {
	switch encoding := h.Get(headerEncoding); encoding {
	case "":
	case encodingS2:
		if n, err := s2.DecodedLen(data); err == nil && n > maxBatchBytes {
			return nil, s2.ErrTooLarge
		}
		lines, err := s2.Decode(nil, data)
		if err != nil {
			return nil, err
		}
		data = lines
	default:
		return nil, fmt.Errorf("unknown encoding %q", encoding)
	}
	var batch []wire.Access
	dec := json.NewDecoder(bytes.NewReader(data))
	for len(batch) < MaxBatch && dec.More() {
		var a wire.Access
		if err := dec.Decode(&a); err != nil {
			return nil, err
		}
		batch = append(batch, a)
	}
	return batch, nil
}

// outside reports whether no event of a batch is within a time span.
func outside(h nats.Header, since, until time.Time) bool {
	from, err1 := strconv.ParseInt(h.Get(headerFrom), 10, 64)
	to, err2 := strconv.ParseInt(h.Get(headerTo), 10, 64)
	if err1 != nil || err2 != nil {
		return false // stored before these headers existed
	}
	return !since.IsZero() && to < since.UnixNano() || !until.IsZero() && from > until.UnixNano()
}
