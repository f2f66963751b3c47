package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"adit/internal/netwatch"
)

// Times of a roamer.
const (
	// detourAfter is how long another socket has to be answered before a detour
	// is begun; longer than two round trips in any case.
	detourAfter = 600 * time.Millisecond
	// detourAgain is the wait after a detour that could not be had, and
	// detourProof how long a new one has to be answered.
	detourAgain = time.Second
	detourProof = 2 * time.Second
	// On a detour UDP is tried after firstTry, and then with pauses that double
	// up to lastTry. Who is cut off again within relapse of a return is in less
	// of a hurry.
	firstTry = time.Second
	lastTry  = 15 * time.Second
	relapse  = time.Minute
	// vain is how many sockets in a row may be answered and yet bear nothing
	// else, each within vainTime of the one before, until a detour is begun all
	// the same: such a path takes challenges and nothing larger.
	vain     = 3
	vainTime = 3 * time.Second
)

// roamer moves one client's session about: to another socket when this
// machine's place in the network has changed or the peer no longer answers,
// because the NAT between may have forgotten the old one; to a detour when that
// is not answered either; and back to UDP when it is open again.
type roamer struct {
	session *dtlsSession
	relay   netip.AddrPort
	cfg     *DialConfig
	ctx     context.Context // of what the roamer starts; ends with run
	group   sync.WaitGroup

	cutOff   bool // since the last trouble no other way was found
	hollow   int  // how many times in a row one was found that bore nothing
	troubled time.Time
	detoured bool // as it was told last
	dialing  context.CancelFunc
	dialed   chan dialedDetour
	detour   *framedConn     // the newest
	broke    <-chan struct{} // that one's

	dialAt   time.Time     // when a detour is due, unless the peer is heard before
	tryAt    time.Time     // when UDP is tried beside the detour
	tryWait  time.Duration // after that
	returned time.Time     // to UDP, the last time
}

type dialedDetour struct {
	conn *framedConn
	err  error
}

func newRoamer(s *dtlsSession, relay netip.AddrPort, cfg *DialConfig) *roamer {
	return &roamer{session: s, relay: relay, cfg: cfg, dialed: make(chan dialedDetour, 1)}
}

// run ends with the session. suspect tells that probes were not answered.
func (r *roamer) run(suspect <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	defer r.group.Wait()
	defer r.giveUpDial()
	defer cancel()
	changed := make(chan netwatch.Change, 1)
	if !r.cfg.NoWatch {
		w := netwatch.Watcher{Target: r.relay, Changed: func(c netwatch.Change) {
			select {
			case changed <- c:
			default:
			}
		}}
		r.group.Go(func() { _ = w.Run(ctx) }) // it ends with ctx alone
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(r.next())
		select {
		case <-r.session.Done():
			return
		case <-suspect:
			r.count()
			r.trouble("no answer")
		case c := <-changed:
			r.trouble(string(c))
		case <-r.session.conn.Moves():
			r.moved()
		case d := <-r.dialed:
			r.takeDetour(d)
		case <-r.broke:
			r.broke = nil
			if r.session.conn.Uses(r.detour) {
				r.trouble("the detour broke")
			} else if r.lost() {
				r.dialAt = time.Now().Add(detourAgain)
			}
		case <-timer.C:
			r.due()
		}
	}
}

// next is how long there is nothing to do.
func (r *roamer) next() time.Duration {
	wait := time.Hour
	for _, at := range []time.Time{r.dialAt, r.tryAt} {
		if !at.IsZero() {
			wait = min(wait, max(0, time.Until(at)))
		}
	}
	return wait
}

// count notes that probes went unanswered, perhaps soon after the last time.
func (r *roamer) count() {
	now := time.Now()
	if r.hollow++; now.Sub(r.troubled) > vainTime {
		r.hollow = 1
	}
	r.troubled = now
}

// trouble tries another socket of UDP. On a detour it is tried beside it, and
// another detour is begun: the old one may have died with the network.
func (r *roamer) trouble(why string) {
	conn, now := r.session.conn, time.Now()
	r.cutOff = true
	if !conn.Detoured() && r.hollow > vain && r.cfg.Detour {
		r.cfg.Logger.Info("session finds only paths that bear nothing", "reason", why)
		r.dial()
		return
	}
	if conn.Detoured() {
		r.cfg.Logger.Info("session in trouble on its detour", "reason", why)
		r.session.Probe() // dead within seconds, if there is no other way
		r.try()
		r.dial()
		return
	}
	socket, err := r.cfg.ListenPacket(r.ctx, r.relay)
	if err == nil {
		err = conn.Rebind(socket)
	}
	r.session.Probe()
	if r.cfg.Detour && r.dialAt.IsZero() {
		r.dialAt = now.Add(max(detourAfter, 2*r.session.Stats().RTT))
	}
	switch {
	case err == nil:
		r.cfg.Logger.Info("session moves to another socket", "reason", why)
	case !errors.Is(err, net.ErrClosed):
		r.cfg.Logger.Warn("move the session to another socket", "reason", why, "error", err)
		if r.cfg.Detour { // without a socket there is nothing to wait for
			r.dialAt = now
		}
	}
}

// lost reports whether the session needs another way still.
func (r *roamer) lost() bool {
	return r.cutOff && (r.session.conn.Unproven() || r.session.conn.Detoured() || r.hollow > vain)
}

// due does what has come due.
func (r *roamer) due() {
	now := time.Now()
	if !r.dialAt.IsZero() && !r.dialAt.After(now) {
		r.dialAt = time.Time{}
		if r.lost() {
			r.dial()
		}
	}
	if !r.tryAt.IsZero() && !r.tryAt.After(now) {
		r.try()
	}
}

// dial begins a detour, unless one is begun.
func (r *roamer) dial() {
	if r.dialing != nil || !r.cfg.Detour {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.dialing = cancel
	r.group.Go(func() {
		conn, err := dialDetour(ctx, r.relay, r.cfg)
		r.dialed <- dialedDetour{conn, err} // it has room for the one
	})
}

// giveUpDial ends the attempt at a detour that is under way, and waits for it.
func (r *roamer) giveUpDial() {
	if r.dialing == nil {
		return
	}
	r.dialing()
	r.dialing = nil
	if d := <-r.dialed; d.conn != nil {
		d.conn.conn.Close()
	}
}

// takeDetour asks the peer over a detour that was dialled.
func (r *roamer) takeDetour(d dialedDetour) {
	r.dialing()
	r.dialing = nil
	switch {
	case d.err != nil:
		r.cfg.Logger.Debug("no detour", "relay", r.cfg.Relay, "error", d.err)
		if r.lost() {
			r.dialAt = time.Now().Add(detourAgain)
		}
		return
	case !r.lost():
		d.conn.conn.Close()
		return
	}
	if err := r.session.conn.Detour(d.conn); err != nil { // the session has ended
		d.conn.conn.Close()
		return
	}
	r.group.Go(d.conn.run)
	r.detour, r.broke = d.conn, d.conn.broke
	r.dialAt = time.Now().Add(detourProof)
}

// try asks for UDP beside the detour.
func (r *roamer) try() {
	r.tryWait = min(max(2*r.tryWait, firstTry), lastTry)
	r.tryAt = time.Now().Add(r.tryWait)
	socket, err := r.cfg.ListenPacket(r.ctx, r.relay)
	if err == nil {
		err = r.session.conn.Try(socket)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		r.cfg.Logger.Debug("try UDP again", "relay", r.cfg.Relay, "error", err)
	}
}

// moved notes that the peer was heard on another way.
func (r *roamer) moved() {
	detoured := r.session.conn.Detoured()
	if !detoured && r.hollow > vain {
		return // as often before
	}
	r.giveUpDial()
	r.cutOff, r.dialAt = false, time.Time{}
	if !detoured {
		r.tryAt = time.Time{}
	}
	if detoured == r.detoured {
		return
	}
	r.detoured = detoured
	if detoured {
		if r.tryWait == 0 || time.Since(r.returned) > relapse {
			r.tryWait = firstTry
		}
		if r.hollow > vain { // UDP answers, but that says little
			r.tryWait = lastTry
		}
		r.hollow = 0
		r.tryAt = time.Now().Add(r.tryWait)
		r.cfg.Logger.Info("session takes a detour over TLS, as UDP does not pass", "relay", r.cfg.Relay)
	} else {
		r.returned = time.Now()
		r.cfg.Logger.Info("session is back on UDP", "relay", r.cfg.Relay)
	}
	select {
	case r.session.changed <- struct{}{}:
	default:
	}
}
