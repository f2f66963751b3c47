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

// askTime is how long a request may take whose caller does not say so.
const askTime = 2 * time.Second

const (
	// codeNoMessage is what JetStream answers when there is nothing under a subject.
	codeNoMessage jetstream.ErrorCode = 10037
	// codeNoStream is what it answers when there is no such bucket.
	codeNoStream jetstream.ErrorCode = 10059
)

// IsGone reports whether an error says that there is no such bucket.
func IsGone(err error) bool {
	var answer *jetstream.APIError
	return errors.As(err, &answer) && answer.ErrorCode == codeNoStream
}

// Leader is whichever server leads a bucket.
type Leader struct {
	Conn   *nats.Conn
	Bucket string
}

// Written is a message of a bucket.
type Written struct {
	Key     string
	Rev     uint64
	Removed bool // a marker of a removal
	Value   []byte
	Time    time.Time // when it was written, by the bucket's clock
	Header  textproto.MIMEHeader
}

// ask makes a request of JetStream's API, within askTime if ctx does not say how
// long that may take. What is not there is no error, but false.
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

// Get is the newest message under a key, the marker of a removal too; false
// without one.
func (l Leader) Get(ctx context.Context, key string) (Written, bool, error) {
	return l.message(ctx, map[string]string{"last_by_subj": l.subject(key)})
}

// State is how far a bucket has come.
type State struct {
	Last     uint64 `json:"last_seq"` // the number of the newest message that it ever had
	Messages uint64 `json:"messages"` // that it has, markers of removals too
	// Asked is when that was so, by the bucket's clock.
	Asked time.Time `json:"-"`
}

// State asks how far the bucket has come.
func (l Leader) State(ctx context.Context) (State, error) {
	var answer struct {
		State State     `json:"state"`
		Asked time.Time `json:"ts"`
	}
	_, err := l.ask(ctx, "INFO", struct{}{}, &answer)
	answer.State.Asked = answer.Asked
	return answer.State, err
}

// Last is the number of the newest message that the bucket ever had.
func (l Leader) Last(ctx context.Context) (uint64, error) {
	s, err := l.State(ctx)
	return s.Last, err
}

// Next is the first message with that number or a higher one; false without one.
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

// header are a message's, without the line of their version; nil without any.
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

// marksRemoval reports whether a message's headers say that a key was removed: by
// the library, or by the server when its time was over.
func marksRemoval(h textproto.MIMEHeader) bool {
	return h.Get("KV-Operation") != "" || h.Get("Nats-Marker-Reason") != ""
}
