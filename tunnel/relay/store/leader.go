package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// codeNoMessage is what JetStream answers when there is nothing under a subject.
const codeNoMessage jetstream.ErrorCode = 10037

// leader asks the leader of one bucket. The library asks whichever server keeps
// the bucket, and watches are served by any of them: that one may lag behind, and
// after a crash for many minutes. These requests are answered by the leader alone.
type leader struct {
	conn   *nats.Conn
	bucket string
}

// written is a message of a bucket.
type written struct {
	key     string
	rev     uint64
	removed bool // a marker of a removal
	value   []byte
}

// ask makes a request of JetStream's API, within tryTime if ctx does not say how
// long that may take. What is not there is no error, but false.
func (l leader) ask(ctx context.Context, call string, question, into any) (bool, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return false, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, tryTime)
		defer cancel()
	}
	m, err := l.conn.RequestWithContext(ctx, "$JS.API.STREAM."+call+".KV_"+l.bucket, text)
	if err != nil {
		return false, fmt.Errorf("ask the leader of %s: %w", l.bucket, err)
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &failed); {
	case err != nil:
		return false, fmt.Errorf("ask the leader of %s: %w", l.bucket, err)
	case failed.Error != nil && failed.Error.ErrorCode == codeNoMessage:
		return false, nil
	case failed.Error != nil:
		return false, fmt.Errorf("ask the leader of %s: %w", l.bucket, failed.Error)
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		return false, fmt.Errorf("ask the leader of %s: %w", l.bucket, err)
	}
	return true, nil
}

// has reports whether the bucket has a value under a key, or the marker of a removal.
func (l leader) has(ctx context.Context, key string) (bool, error) {
	_, ok, err := l.get(ctx, key)
	return ok, err
}

// get is the newest message under a key, the marker of a removal too; false
// without one.
func (l leader) get(ctx context.Context, key string) (written, bool, error) {
	return l.message(ctx, map[string]string{"last_by_subj": l.subject(key)})
}

// last is the number of the newest message that the bucket ever had.
func (l leader) last(ctx context.Context) (uint64, error) {
	var answer struct {
		State struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	_, err := l.ask(ctx, "INFO", struct{}{}, &answer)
	return answer.State.Last, err
}

// next is the first message with that number or a higher one; false without one.
func (l leader) next(ctx context.Context, rev uint64) (written, bool, error) {
	w, ok, err := l.message(ctx, map[string]any{"seq": rev, "next_by_subj": l.subject(">")})
	if ok && w.rev < rev {
		return written{}, false, fmt.Errorf("ask the leader of %s: %q of %d is not what was asked for", l.bucket, w.key, w.rev)
	}
	return w, ok, err
}

func (l leader) message(ctx context.Context, which any) (written, bool, error) {
	var answer struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	ok, err := l.ask(ctx, "MSG.GET", which, &answer)
	if !ok || err != nil {
		return written{}, false, err
	}
	m := answer.Message
	key, ours := strings.CutPrefix(m.Subject, l.subject(""))
	if !ours {
		return written{}, false, fmt.Errorf("ask the leader of %s: %q of %d is not what was asked for", l.bucket, m.Subject, m.Seq)
	}
	return written{key: key, rev: m.Seq, removed: marksRemoval(m.Headers), value: m.Data}, true, nil
}

func (l leader) subject(key string) string { return "$KV." + l.bucket + "." + key }

// marksRemoval reports whether a message's headers say that a key was removed: by
// the library, or by the server when its time was over.
func marksRemoval(headers []byte) bool {
	_, lines, ok := bytes.Cut(headers, []byte("\r\n"))
	if !ok {
		return false
	}
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines))).ReadMIMEHeader()
	if err != nil {
		return false
	}
	return h.Get("KV-Operation") != "" || h.Get("Nats-Marker-Reason") != ""
}
