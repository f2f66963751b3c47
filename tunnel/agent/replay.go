package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/splice"
	"adit/tunnel/wire"
)

// replayTime is how long a repeated request may take.
const replayTime = 30 * time.Second

// Requests returns the inspector's entries, newest first.
func (a *Agent) Requests(f inspect.Filter) []inspect.Summary { return a.inspector.List(f) }

// Request returns one entry in full; reveal shows what is redacted otherwise.
func (a *Agent) Request(id string, reveal bool) (inspect.Detail, bool) {
	return a.inspector.Detail(id, reveal)
}

// ClearRequests forgets all entries.
func (a *Agent) ClearRequests() { a.inspector.Clear() }

// WriteHAR writes the entries that f picks as HAR 1.2.
func (a *Agent) WriteHAR(w io.Writer, f inspect.Filter, reveal bool) error {
	return a.inspector.WriteHAR(w, f, a.cfg.Version, reveal)
}

// ReadHAR takes the entries of a HAR file in, to look at and to replay.
func (a *Agent) ReadHAR(r io.Reader) (int, error) {
	n, err := a.inspector.ReadHAR(r)
	if errors.Is(err, inspect.ErrOff) {
		return n, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error() + "; [inspector] enabled in adit.toml turns it on"}
	}
	if errors.Is(err, inspect.ErrHAR) {
		return n, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	return n, err
}

// replayTarget is the tunnel of id; without an id, as of an imported request, it
// is the only one that carries HTTP. It may be nil.
func (a *Agent) replayTarget(id string) *tunnel {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tunnels[id]
	if id != "" {
		return t
	}
	for _, other := range a.tunnels {
		if !other.spec.Web() {
			continue
		}
		if t != nil {
			return nil
		}
		t = other
	}
	return t
}

// Replay sends a kept request to its tunnel's origin again, changed by edit,
// and returns the new entry.
func (a *Agent) Replay(ctx context.Context, id string, edit inspect.Edit) (inspect.Detail, error) {
	again, err := a.inspector.Repeat(id, edit)
	switch {
	case errors.Is(err, inspect.ErrGone):
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeNotFound, Message: err.Error()}
	case err != nil:
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	t := a.replayTarget(again.TunnelID)
	if t == nil {
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeNotFound, Message: "the tunnel that this request came through is not there any more"}
	}
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	r := t.route.Load()
	if again.TunnelID == "" { // imported, as a visitor asked for it
		r, again.Bytes = r.led(again.Bytes)
	} else if r = r.at(again.TunnelPath); r == nil {
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeNotFound, Message: fmt.Sprintf("the tunnel has no path %s any more", again.TunnelPath)}
	}
	if !r.spec.Web() {
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "the tunnel carries no HTTP any more"}
	}
	kind := wire.StreamHTTP
	byHTTP2 := repeatsByHTTP2(r.spec, again)
	if byHTTP2 {
		kind = wire.StreamRaw
	}
	service, err := a.dialOrigin(ctx, r, kind, origin.ProxyHeader(r.spec.ProxyProtocol, netip.AddrPort{}, netip.AddrPort{}))
	if err != nil {
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	defer service.Close()
	stop := context.AfterFunc(ctx, func() { service.Close() })
	defer stop()

	meta := inspect.Meta{TunnelID: r.id, TunnelName: r.name, Type: r.spec.Type, Visitor: "replay", ReplayOf: id, Secret: r.secret, Path: r.path, Prefix: r.prefix}
	var tap *inspect.Tap
	if byHTTP2 {
		tap = a.inspector.HTTP2(meta)
		err = repeatHTTP2(ctx, service, tap, again.Bytes)
	} else {
		tap = a.inspector.HTTP(meta)
		err = repeatHTTP(service, tap, again.Bytes)
	}
	tap.Close()
	service.Close()
	if d, ok := tap.Detail(false); ok && (err == nil || d.Response != nil || ctx.Err() != nil) {
		return d, nil
	}
	if err != nil {
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "the local service at " + r.service.String() + " does not answer by HTTP/2: " + err.Error()}
	}
	return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "the inspector did not keep the repeated request"}
}

// repeatHTTP sends a request to origin by HTTP/1.1, and reads the whole answer.
// tap hears both.
func repeatHTTP(origin net.Conn, tap *inspect.Tap, raw []byte) error {
	tap.FromVisitor(raw)
	// Large bodies and early answers pass each other.
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = io.Copy(origin, bytes.NewReader(raw)) }) // an origin may answer without reading all
	err := splice.Half(io.Discard, origin, func(b []byte) {
		if tap.FromOrigin(b); tap.Answered() {
			origin.Close() // not every service does when it is asked to
		}
	}, nil)
	if err == nil {
		tap.OriginEnded()
	}
	origin.Close()
	return nil
}
