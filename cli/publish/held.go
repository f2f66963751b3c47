package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"adit/cli/daemon"
	"adit/localapi/client"
)

// againWait is how long a short form waits before it asks for its tunnel again, and againTries how
// often it does so if the relay refuses the address that it had.
const (
	againWait  = 500 * time.Millisecond
	againTries = 10
)

// answerWait is how long a short form that is ending waits for the answer to its request for a
// tunnel: nobody else would know to remove that tunnel.
const answerWait = 3 * time.Second

// nameTries is how many names are tried before the daemon chooses one.
const nameTries = 9

// refuses reports whether err is the daemon's refusal of a field of the request.
func refuses(err error, field string) bool {
	var refusal *client.Error
	return errors.As(err, &refusal) && refusal.Code == client.ErrorCodeInvalidParameter && refusal.Field == field
}

// heldTunnel is the tunnel of a short form. The daemon deletes it soon after the short form has
// ended, however it ended.
type heldTunnel struct {
	client  *client.Client
	wanted  client.TunnelCreate
	anyName bool // where the wanted name is taken, another will do

	stop context.CancelFunc // ends the hold; nil without one
	wg   sync.WaitGroup
}

// create creates the tunnel described by in, and holds it in place of the previous one. It may
// succeed even if ctx ends in the meantime.
func (h *heldTunnel) create(ctx context.Context, in client.TunnelCreate) (client.Tunnel, error) {
	asking, cancel := outlasting(ctx, answerWait)
	defer cancel()
	ask := func() (client.Tunnel, error) { return h.client.CreateTunnel(asking, in) }
	in.Held = true
	t, err := daemon.Patiently(ctx, ask)
	if refuses(err, "held") {
		// A daemon from before the last update is still running: it does not support holding.
		in.Held = false
		t, err = daemon.Patiently(ctx, ask)
	}
	for i := 2; h.anyName && in.Name != "" && refuses(err, "name"); i++ {
		in.Name = ""
		if i <= nameTries {
			in.Name = fmt.Sprintf("%s-%d", h.wanted.Name, i)
		}
		t, err = daemon.Patiently(ctx, ask)
	}
	if err != nil {
		return t, err
	}
	h.release()
	if in.Held {
		// Hold it until release, even if ctx has ended and the tunnel is being deleted.
		hold, stop := context.WithCancel(context.WithoutCancel(ctx))
		h.stop = stop
		c := h.client // the daemon may be elsewhere later
		h.wg.Go(func() {
			// If the tunnel is gone, the events say so too.
			_ = c.HoldTunnel(hold, t.ID)
		})
	}
	return t, nil
}

// outlasting returns a context that ends d after ctx does.
func outlasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() { stop(); cancel() }
}

// again recreates the tunnel that the daemon has forgotten, with its previous address if possible,
// and waits for the relay if necessary.
func (h *heldTunnel) again(ctx context.Context, before client.Tunnel) (client.Tunnel, error) {
	in := h.wanted
	numbered := (in.Type == client.TunnelTypeTCP || in.Type == client.TunnelTypeUDP) && in.Mode != client.TunnelModePrivate
	if in.Domain == "" && !numbered {
		in.Domain = before.Domain
	}
	if in.RemotePort == 0 {
		in.RemotePort = before.RemotePort
	}
	for refused := 0; ; {
		t, err := h.create(ctx, in)
		switch {
		case client.IsCode(err, client.ErrorCodeRelayUnreachable):
		case client.IsCode(err, client.ErrorCodeRelayRejected) && refused < againTries:
			refused++ // the tunnel that was may not be given back yet
		case client.IsCode(err, client.ErrorCodeRelayRejected) && (in.Domain != h.wanted.Domain || in.RemotePort != h.wanted.RemotePort):
			in = h.wanted
			continue
		default:
			return t, err
		}
		timer := time.NewTimer(againWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return t, ctx.Err()
		case <-timer.C:
		}
	}
}

// release ends the hold.
func (h *heldTunnel) release() {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.wg.Wait()
}
