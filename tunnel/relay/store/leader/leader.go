// Package leader queries the leader of a JetStream bucket. The NATS library queries any server
// that keeps the bucket, and any of them serves watches; such a server may lag behind, after a
// crash for many minutes. Queries made here are answered by the leader only.
package leader

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// askTime limits a request if its context has no deadline.
const askTime = 2 * time.Second

const (
	// codeNoMessage is JetStream's error if a subject has no message.
	codeNoMessage jetstream.ErrorCode = 10037
	// codeNoStream is its error if there is no such bucket.
	codeNoStream jetstream.ErrorCode = 10059
)

// IsGone reports whether an error means that there is no such bucket.
func IsGone(err error) bool {
	var answer *jetstream.APIError
	return errors.As(err, &answer) && answer.ErrorCode == codeNoStream
}

// Leader represents whichever server currently leads a bucket.
type Leader struct {
	Conn   *nats.Conn
	Bucket string
}

// Written is a message of a bucket.
type Written struct {
	Key     string
	Rev     uint64
	Removed bool // the marker of a removal
	Value   []byte
	Time    time.Time // when it was written, by the bucket's clock
	Header  textproto.MIMEHeader
}

// ask makes a request to JetStream's API, within askTime if ctx has no deadline. If the thing
// asked for does not exist, it returns false and no error.
func (l Leader) ask(ctx context.Context, call string, question, into any) (bool, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return false, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTime)
		defer cancel()
	}
	m, err := l.Conn.RequestWithContext(ctx, "$JS.API.STREAM."+call+".KV_"+l.Bucket, text)
	if err != nil {
		return false, fmt.Errorf("ask the leader of %s: %w", l.Bucket, err)
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &failed); {
	case err != nil:
		return false, fmt.Errorf("ask the leader of %s: %w", l.Bucket, err)
	case failed.Error != nil && failed.Error.ErrorCode == codeNoMessage:
		return false, nil
	case failed.Error != nil:
		return false, fmt.Errorf("ask the leader of %s: %w", l.Bucket, failed.Error)
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		return false, fmt.Errorf("ask the leader of %s: %w", l.Bucket, err)
	}
	return true, nil
}

// Get returns the newest message under a key, which may be the marker of a removal. It returns
// false if there is none.
func (l Leader) Get(ctx context.Context, key string) (Written, bool, error) {
	return l.message(ctx, map[string]string{"last_by_subj": l.subject(key)})
}

// State says how far a bucket has come.
type State struct {
	Last     uint64 `json:"last_seq"` // number of the newest message that it has ever had
	Messages uint64 `json:"messages"` // number of messages, including markers of removals
	// Asked is when this was the state, by the bucket's clock.
	Asked time.Time `json:"-"`
}

// State returns the bucket's current state.
func (l Leader) State(ctx context.Context) (State, error) {
	var answer struct {
		State State     `json:"state"`
		Asked time.Time `json:"ts"`
	}
	_, err := l.ask(ctx, "INFO", struct{}{}, &answer)
	answer.State.Asked = answer.Asked
	return answer.State, err
}

// Last returns the number of the newest message that the bucket has ever had.
func (l Leader) Last(ctx context.Context) (uint64, error) {
	s, err := l.State(ctx)
	return s.Last, err
}

// Next returns the first message whose number is rev or higher. It returns false if there is
// none.
func (l Leader) Next(ctx context.Context, rev uint64) (Written, bool, error) {
	w, ok, err := l.message(ctx, map[string]any{"seq": rev, "next_by_subj": l.subject(">")})
	if ok && w.Rev < rev {
		return Written{}, false, fmt.Errorf("ask the leader of %s: %q of %d is not what was asked for", l.Bucket, w.Key, w.Rev)
	}
	return w, ok, err
}

func (l Leader) message(ctx context.Context, which any) (Written, bool, error) {
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Headers []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	ok, err := l.ask(ctx, "MSG.GET", which, &answer)
	if !ok || err != nil {
		return Written{}, false, err
	}
	m := answer.Message
	key, ours := strings.CutPrefix(m.Subject, l.subject(""))
	if !ours {
		return Written{}, false, fmt.Errorf("ask the leader of %s: %q of %d is not what was asked for", l.Bucket, m.Subject, m.Seq)
	}
	h := header(m.Headers)
	return Written{Key: key, Rev: m.Seq, Removed: marksRemoval(h), Value: m.Data, Time: m.Time, Header: h}, true, nil
}

func (l Leader) subject(key string) string { return "$KV." + l.Bucket + "." + key }

// header parses a message's headers, which follow a line with their version. It returns nil if
// there are none.
func header(text []byte) textproto.MIMEHeader {
	_, lines, ok := bytes.Cut(text, []byte("\r\n"))
	if !ok {
		return nil
	}
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines))).ReadMIMEHeader()
	if err != nil {
		return nil
	}
	return h
}

// marksRemoval reports whether a message's headers mark a key as removed: by the library, or
// by the server when its time was up.
func marksRemoval(h textproto.MIMEHeader) bool {
	return h.Get("KV-Operation") != "" || h.Get("Nats-Marker-Reason") != ""
}
