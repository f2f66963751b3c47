package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/sockio"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/splice"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	prefaceWait = 10 * time.Second
	// lingering is how long an origin may be silent after the edge has closed a stream of HTTP
	// requests: nobody may be reading any more. It is also how long the edge may take to read the
	// response of an origin that has closed.
	lingering = 30 * time.Second
	// requestWait and maxUnserved limit how much of a request that is not served is read for the
	// inspector.
	requestWait = 250 * time.Millisecond
	maxUnserved = 128 << 10
	// noticeWait is how long it may take to find out that an origin that resets its connection
	// accepts no more of a request. answerWait is how long after that, or after the origin's last
	// response, the edge has to end the stream by itself.
	noticeWait = 20 * time.Millisecond
	answerWait = time.Second
)

// visit serves one stream.
func (s *Session) visit(ctx context.Context, stream link.Stream) {
	defer stream.Close()
	stream.SetReadDeadline(time.Now().Add(prefaceWait))
	preface, err := wire.ReadPreface(stream)
	if err != nil {
		s.by.log.Debug("stream without a preface", "error", err)
		stream.Reset()
		return
	}
	stream.SetReadDeadline(time.Time{})
	t, era := s.lookup(ctx, preface.Endpoint)
	if t == nil {
		_ = answer(stream, errors.New("this tunnel is not running"))
		return
	}
	own := t.route.Load()
	r := own.at(preface.Path)
	if r == nil { // it has changed since the relay was told
		r, err = own, fmt.Errorf("this tunnel has no path %s", preface.Path)
	}
	var service splice.HalfCloser
	if err == nil {
		present, done := whilePresent(ctx, stream)
		service, err = s.by.dial(present, r, preface.Kind, origin.ProxyHeader(r.spec.ProxyProtocol, preface.Visitor, preface.Edge))
		if err != nil && errors.Is(context.Cause(present), errLeft) {
			err = r.service.Unreached(context.DeadlineExceeded) // as far as the visitor has waited
		}
		done()
	}
	if err != nil {
		s.by.trouble(r, err.Error())
		s.by.notTaken(r, preface, stream, err)
		_ = answer(stream, err)
		return
	}
	defer service.Close()
	if err := answer(stream, nil); err != nil {
		return
	}
	s.by.pipe(&pipe{tunnel: t, route: r, stream: stream, service: service}, era, preface)
}

// answer tells the edge whether the origin is connected.
func answer(stream link.Stream, err error) error {
	stream.SetWriteDeadline(time.Now().Add(prefaceWait))
	_, writeErr := stream.Write(wire.AppendAnswer(nil, err))
	stream.SetWriteDeadline(time.Time{})
	return writeErr
}

// pipe is one visitor's connection with its origin.
type pipe struct {
	tunnel  *Tunnel
	route   *route
	stream  link.Stream
	service splice.HalfCloser
	once    sync.Once
}

// abort ends both sides at once.
func (p *pipe) abort() {
	p.once.Do(func() {
		p.stream.Reset()
		if tcp, ok := p.service.(*sockio.Conn); ok {
			_ = tcp.SetLinger(0) // the origin learns that it was cut, not ended
		}
		p.service.Close()
	})
}

// pipe copies in both directions until both have ended, for a visitor that came in era.
func (f *Forwarder) pipe(p *pipe, era int, preface wire.Preface) {
	t, stream, service := p.tunnel, p.stream, p.service
	t.conns.add(p, p.route, era)
	defer t.conns.remove(p)
	if p.route.path != "" && !t.leads(p.route) {
		p.abort() // it was cut while its origin was dialled
	}
	t.counters.Enter()
	f.active()
	defer f.active()
	defer t.counters.Leave()

	tap := f.tap(p.route, preface)
	defer tap.Close()
	var closed atomic.Bool         // by the edge: nobody reads the origin's answer for long
	spurned := make(chan struct{}) // closed when the origin takes no more of a request
	copied := make(chan struct{})  // closed when no more of it is copied
	var answered time.Time         // when the origin last did
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(copied)
		// The inspector must know of a request before the origin can answer it.
		err := splice.Half(service, stream, func(b []byte) {
			t.counters.In(len(b))
			f.passed.In(len(b))
			tap.FromVisitor(b)
		}, nil)
		tap.VisitorEnded()
		var unwritten *splice.WriteError
		if preface.Kind == wire.StreamHTTP && errors.As(err, &unwritten) {
			stream.SetReadDeadline(time.Now().Add(lingering))
			close(spurned)
			err = splice.Half(io.Discard, stream, nil, nil)
			if err == nil {
				return
			}
		}
		if err != nil || service.CloseWrite() != nil {
			p.abort()
			return
		}
		if preface.Kind == wire.StreamHTTP {
			closed.Store(true)
			service.SetReadDeadline(time.Now().Add(lingering))
		}
	})
	err := splice.Half(stream, service, func(b []byte) {
		// Before the visitor can receive it and ask how much there was.
		t.counters.Out(len(b))
		f.passed.Out(len(b))
	}, func(b []byte) {
		tap.FromOrigin(b)
		answered = time.Now()
		if closed.Load() {
			service.SetReadDeadline(time.Now().Add(lingering))
		}
	})
	tap.OriginEnded()
	if err != nil && preface.Kind == wire.StreamHTTP {
		p.hearOut(answered, spurned, copied)
	}
	if err != nil || stream.CloseWrite() != nil {
		p.abort()
	}
	wg.Wait()
}

// hearOut lets the edge have the response of an origin that has reset its connection because it did
// not want the rest of the request, such as when it refuses a large upload: ending the stream would
// discard the response too (RFC 9112, section 9.6). Whether that was the reason shows only when the
// visitor sends more, and the visitor may pause, so if a response came a moment ago, hearOut waits
// in any case.
func (p *pipe) hearOut(answered time.Time, spurned, copied <-chan struct{}) {
	notice := time.NewTimer(max(noticeWait, time.Until(answered.Add(answerWait))))
	defer notice.Stop()
	select {
	case <-notice.C:
	case <-copied: // the edge has ended it
	case <-spurned:
		p.stream.SetReadDeadline(time.Now().Add(answerWait))
		<-copied
	}
}

// tap returns what shows one connection to the inspector; nil if nothing is to be shown.
func (f *Forwarder) tap(r *route, preface wire.Preface) *inspect.Tap {
	if !r.inspect {
		return nil
	}
	meta := inspect.Meta{TunnelID: r.id, TunnelName: r.name, Type: r.spec.Type, Visitor: preface.Visitor.String(), Client: preface.Client, Secret: r.secret, Path: r.path, Prefix: r.prefix}
	switch {
	case preface.Kind == wire.StreamHTTP:
		return f.inspector.HTTP(meta)
	case r.spec.Web():
		return f.inspector.HTTP2(meta) // it is what the edge speaks on a raw stream to such a tunnel
	}
	return f.inspector.Flow(meta)
}

// notTaken shows the inspector a visitor that the origin did not accept. The request comes with the
// preface; whatever has not been read of it before the edge gets its answer is lost.
func (f *Forwarder) notTaken(r *route, preface wire.Preface, stream link.Stream, why error) {
	tap := f.tap(r, preface)
	if tap == nil {
		return
	}
	defer tap.Close()
	status := 0
	if preface.Kind == wire.StreamHTTP {
		shared := r.spec.Mode != wire.ModeStandard // another agent may take the visitor, and is not to wait for long
		if !shared {
			status = http.StatusBadGateway
		}
		stream.SetReadDeadline(time.Now().Add(requestWait))
		buf := make([]byte, 4<<10)
		for heard := 0; heard < maxUnserved; {
			n, err := stream.Read(buf)
			tap.FromVisitor(buf[:n])
			heard += n
			if begun, whole := tap.Asked(); whole || begun && shared || err != nil {
				break
			}
		}
		stream.SetReadDeadline(time.Time{})
	}
	tap.Refuse(status, why.Error())
}
