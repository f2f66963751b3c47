package forward

import (
	"bytes"
	"context"
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

// replayTime is how long a replayed request may take.
const replayTime = 30 * time.Second

// Replay sends again, a repeat of the recorded request id, to the origin of t, and returns the new
// entry. Its errors are refusals.
func (f *Forwarder) Replay(ctx context.Context, t *Tunnel, id string, again inspect.Repeat) (inspect.Detail, error) {
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
	service, err := f.dial(ctx, r, kind, origin.ProxyHeader(r.spec.ProxyProtocol, netip.AddrPort{}, netip.AddrPort{}))
	if err != nil {
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	defer service.Close()
	stop := context.AfterFunc(ctx, func() { service.Close() })
	defer stop()

	meta := inspect.Meta{TunnelID: r.id, TunnelName: r.name, Type: r.spec.Type, Visitor: "replay", ReplayOf: id, Secret: r.secret, Path: r.path, Prefix: r.prefix}
	var tap *inspect.Tap
	if byHTTP2 {
		tap = f.inspector.HTTP2(meta)
		err = repeatHTTP2(ctx, service, tap, again.Bytes)
	} else {
		tap = f.inspector.HTTP(meta)
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

// repeatHTTP sends a request to origin over HTTP/1.1, and reads the whole response. tap hears both.
func repeatHTTP(origin net.Conn, tap *inspect.Tap, raw []byte) error {
	tap.FromVisitor(raw)
	// Large bodies and early responses can overlap.
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
