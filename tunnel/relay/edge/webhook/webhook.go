// Package webhook holds the bodies of webhooks until their signatures have been verified,
// within limits per address, endpoint and node. A policy decides which signatures are valid,
// and the caller provides the body.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"adit/internal/lend"
	"adit/internal/netblock"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signature"
)

// Each part of a body is twice as long as the one before.
const (
	firstPart = 4 << 10
	lastPart  = 256 << 10
)

var (
	errNoRoom  = errors.New("too much is held of bodies whose signatures are to be checked")
	errTooLong = errors.New("the body is longer than is let in")
	errLate    = errors.New("the body came too late")
)

// keptBody is a body that is held. Its room is released as it is read, and when it is closed.
type keptBody struct {
	of   *Holding
	from netip.Prefix
	most int64
	end  func() // stops it from arriving, at once

	spared bool // makes room for others; Room.mu guards it

	mu    sync.Mutex
	size  int64
	parts []part
	shut  bool
	cut   bool // closed before all of it was read
}

type part struct {
	left []byte // the part not read yet
	room int64
}

// Kept reports whether a request's body has arrived and is held.
func Kept(r *http.Request) bool {
	_, ok := r.Body.(*keptBody)
	return ok
}

// keep adds b to the body.
func (k *keptBody) keep(b []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size += int64(len(b)); k.size > k.most {
		return errTooLong
	}
	for len(b) > 0 {
		last := len(k.parts) - 1
		if last < 0 || len(k.parts[last].left) == cap(k.parts[last].left) {
			room := firstPart
			if last >= 0 {
				room = min(2*cap(k.parts[last].left), lastPart)
			}
			if k.shut || !k.of.take(k, int64(room)) {
				return errNoRoom
			}
			last++
			k.parts = append(k.parts, part{make([]byte, 0, room), int64(room)})
		}
		p := &k.parts[last]
		n := min(len(b), cap(p.left)-len(p.left))
		p.left, b = append(p.left, b[:n]...), b[n:]
	}
	return nil
}

// writeTo writes the whole body. Nothing of it may have been read.
func (k *keptBody) writeTo(w io.Writer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.parts {
		_, _ = w.Write(p.left) // w is a hash, which returns no errors
	}
}

func (k *keptBody) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.cut:
		return 0, http.ErrBodyReadAfterClose // what was forwarded is incomplete
	case len(k.parts) == 0:
		return 0, io.EOF
	}
	first := &k.parts[0]
	n := copy(b, first.left)
	if first.left = first.left[n:]; len(first.left) == 0 {
		k.drop()
	}
	return n, nil
}

// drop releases the first part. The caller holds mu.
func (k *keptBody) drop() {
	k.of.give(k, k.parts[0].room)
	k.parts[0] = part{}
	k.parts = k.parts[1:]
}

// Close may be called while the body is being read.
func (k *keptBody) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shut, k.cut = true, k.cut || len(k.parts) > 0
	for len(k.parts) > 0 {
		k.drop()
	}
	return nil
}

// Webhook is a request that is only admitted if its signature is valid.
type Webhook struct {
	signs  *policy.Signs
	body   *keptBody
	signed signature.Print // identifies the secret that signed the request
	shadow *shadowBody     // nil unless the policy is in shadow mode and there is a body
	only   bool            // the policy is in shadow mode
}

// Asked describes a webhook request as it came.
type Asked struct {
	Request              *http.Request
	Scheme, Host, Target string // of the URL that the visitor requested
	From                 netip.Addr
}

// Read reads the signature of a webhook request. at is where its body is held.
func Read(p *policy.Policy, hook *policy.Hook, a Asked, at *Holding) (*Webhook, policy.Decision) {
	r := a.Request
	signs, d := hook.Read(signature.Request{Header: r.Header, Method: r.Method, Scheme: a.Scheme, Host: a.Host, Target: a.Target}, time.Now())
	if !d.Allowed {
		return nil, d
	}
	most := int64(policy.MaxWebhookBody)
	if limit := p.MaxBody(); limit > 0 {
		most = min(most, limit)
	}
	if signs.NeedsBody() && r.ContentLength > most {
		return nil, policy.Decision{Rule: policy.RuleMaxBody, Detail: errTooLong.Error()}
	}
	return &Webhook{signs: signs, body: &keptBody{of: at, from: netblock.Of(a.From), most: most}, only: p.Shadow()}, d
}

// Coming says how to receive a webhook's body.
type Coming struct {
	Read    func(ctx context.Context, body io.Reader, b []byte) (int, error)
	Control *http.ResponseController // of the request; sets its read deadline
	Within  time.Duration
	Linger  time.Duration // how long to keep reading from a visitor who is refused
	Last    func()        // makes an HTTP/1 connection close after the answer
}

// Print identifies the secret that signed the request.
func (k *Webhook) Print() signature.Print { return k.signed }

// Decide decides whether a webhook is admitted, which requires reading its body, and returns
// the request to forward. In shadow mode the body is forwarded as it arrives, and Verdict
// returns the decision.
func (k *Webhook) Decide(ctx context.Context, r *http.Request, how Coming) (*http.Request, policy.Decision) {
	if k.signs.NeedsBody() && r.Body != nil && r.Body != http.NoBody {
		body := r.Body
		r = r.WithContext(ctx) // the server's own request must not change
		if k.only {
			k.shadow = &shadowBody{ReadCloser: body, body: k.body}
			r.Body = k.shadow
			return r, policy.Decision{Allowed: true}
		}
		if err := k.take(ctx, how, body); err != nil {
			k.Close()
			return r, refusalOf(err)
		}
		r.Body = k.body
		r.Header.Del("Expect") // the body has arrived
	}
	var d policy.Decision
	k.signed, d = k.signs.Decide(k.body.writeTo)
	return r, d
}

// take reads a body to its end.
func (k *Webhook) take(ctx context.Context, how Coming, body io.Reader) (err error) {
	ctx, stopTimer := context.WithTimeout(ctx, how.Within)
	defer stopTimer()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	k.body.end = func() { end(errNoRoom) }
	k.body.of.begin(k.body)
	defer k.body.of.come(k.body)
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = how.Control.SetReadDeadline(time.Now())
	})
	defer func() {
		if !stop() {
			<-done // otherwise it could overwrite the deadline set below
			if err == nil {
				// net/http watches the connection after a complete body. It takes the deadline
				// for the end of the visitor, and would abandon the connection's next
				// requests.
				how.Last()
				err = cmp.Or(spared(ctx), errLate)
			}
		}
		switch {
		case err == nil: // the next request on the connection has its own time limit
			_ = how.Control.SetReadDeadline(time.Time{})
		case ctx.Err() == nil: // net/http reads some of what is left before it answers
			_ = how.Control.SetReadDeadline(time.Now().Add(how.Linger))
		}
	}()
	var mem lend.Buffer
	defer mem.Return()
	for {
		b := mem.Lend()
		n, err := how.Read(ctx, body, b)
		if full := k.body.keep(b[:n]); full != nil {
			return full
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the body: %w", cmp.Or(spared(ctx), err))
		}
		mem.Done(n)
	}
}

// spared returns the error of a body that was ended to make room for others, or nil.
func spared(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errNoRoom) {
		return cause
	}
	return nil
}

// refusalOf returns the decision for a body that could not be held.
func refusalOf(err error) policy.Decision {
	d := policy.Decision{Rule: policy.RuleWebhookBody, Detail: err.Error()}
	switch {
	case errors.Is(err, errTooLong):
		d.Rule = policy.RuleMaxBody
	case errors.Is(err, errNoRoom):
		d.Rule = policy.RuleWebhookBusy
	}
	return d
}

// Verdict returns the decision on a request that was forwarded in shadow mode, or before if
// the decision was already known then.
func (k *Webhook) Verdict(before policy.Decision) policy.Decision {
	if k == nil || k.shadow == nil {
		return before
	}
	return k.shadow.verdict(k.signs)
}

// Close releases what is still held of the body.
func (k *Webhook) Close() {
	if k != nil {
		_ = k.body.Close() // never fails
	}
}

// shadowBody is a body that is forwarded as it arrives and kept for a verdict.
type shadowBody struct {
	io.ReadCloser
	body *keptBody

	mu    sync.Mutex
	whole bool
	fault error // why it could not be kept
}

func (s *shadowBody) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		if s.fault = s.body.keep(b[:n]); s.fault != nil {
			_ = s.body.Close()
		}
	}
	s.whole = s.whole || errors.Is(err, io.EOF)
	return n, err
}

// verdict admits a request that it cannot judge because the origin did not read all of the
// body.
func (s *shadowBody) verdict(signs *policy.Signs) policy.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fault != nil:
		return refusalOf(s.fault)
	case !s.whole:
		return policy.Decision{Allowed: true}
	}
	_, d := signs.Decide(s.body.writeTo)
	return d
}
