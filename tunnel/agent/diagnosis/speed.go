package diagnosis

import (
	"context"
	"errors"
	"math"

	"adit/internal/goodput"
	"adit/tunnel/agent/control"
	"adit/tunnel/agent/session"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/link"
)

// speedTime is how long the measurement of one transport may take, for both directions.
const speedTime = 6 * goodput.Time

// Speed is the speed of the path between this machine and the relay over one transport.
type Speed struct {
	Transport string  `json:"transport"` // dtls or tls
	InUse     bool    `json:"in_use"`    // whether the session runs over it now
	RTTMillis float64 `json:"rtt_ms"`    // 0 if not measured
	// PerSecond are bytes per second, which a tunnel reaches if nothing else moves and the local
	// service is fast; 0 if not measured.
	PerSecond traffic.Bytes `json:"bytes_per_second"`
	// Error says why something was not measured; empty if everything was.
	Error string `json:"error"`
}

// Speeds are the speeds of both transports, DTLS first.
type Speeds struct {
	Items []Speed `json:"items"`
	// Advice says what to do; empty if the transport in use is the right one.
	Advice string `json:"advice"`
}

// Way is a way to a relay whose speed is to be measured.
type Way struct {
	Dialer  *session.Dialer
	Addr    string          // the relay's
	Joining session.Joining // of a trial
	Used    link.Transport  // that the session in use runs over
	Set     link.Transport  // that is configured
}

// Speeds moves bytes between this machine and the relay, over each transport and in each direction.
func (w Way) Speeds(ctx context.Context) Speeds {
	var list []Speed
	for _, w.Joining.Over = range []link.Transport{link.DTLS, link.TLS} {
		s := Speed{Transport: string(w.Joining.Over), InUse: w.Joining.Over == w.Used}
		w.trial(ctx, &s)
		list = append(list, s)
	}
	return Speeds{Items: list, Advice: speedAdvice(list[0], list[1], w.Set)}
}

// trial measures a transport with a separate session: the one in use may move from UDP to TCP
// during the measurement.
func (w Way) trial(ctx context.Context, s *Speed) {
	dialling, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	l, err := w.Dialer.Connect(dialling, w.Addr, w.Joining)
	switch {
	case err == nil:
		s.measure(ctx, l)
		l.End("a measurement of speed is over")
	case w.Joining.Over == link.DTLS && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, link.ErrTimeout)):
		s.Error = "UDP does not reach the relay at " + w.Addr
	default:
		s.Error = control.Describe(err, w.Addr)
	}
}

// measure fills in what a session shows.
func (s *Speed) measure(ctx context.Context, l *session.Session) {
	ctx, cancel := context.WithTimeout(ctx, speedTime)
	defer cancel()
	s.RTTMillis = float64(l.Link.Stats().RTT.Microseconds()) / 1000 // before the queues are full
	in, err := l.Control.SpeedIn(ctx)
	s.PerSecond.In = int64(math.Round(in))
	if err == nil {
		var out float64
		out, err = l.Control.SpeedOut(ctx)
		s.PerSecond.Out = int64(math.Round(out))
	}
	if err != nil {
		s.Error = control.Describe(err, l.Addr)
	}
}

const (
	// plenty is a speed at which nothing needs to be improved, in bytes per second.
	plenty = 16 << 20
	// better is how much faster another transport has to be to make a change worthwhile: single
	// measurements vary.
	better = 1.5
)

// slowed reports whether a is too slow in one direction, in which b is faster.
func slowed(a, b int64) bool { return a < plenty && float64(b) > better*float64(a) }

// slower reports whether a is slowed in one direction, and b is not in the other.
func slower(a, b traffic.Bytes) bool {
	return (slowed(a.In, b.In) || slowed(a.Out, b.Out)) && !slowed(b.In, a.In) && !slowed(b.Out, a.Out)
}

// speedAdvice says whether another transport would be better than the configured one, or the one in
// use. Some networks let UDP through, but only a little of it.
func speedAdvice(dtls, tls Speed, set link.Transport) string {
	if dtls.Error != "" || tls.Error != "" {
		return ""
	}
	switch udp, tcp := dtls.PerSecond, tls.PerSecond; {
	case slower(udp, tcp) && set != link.TLS: // a session that is over TLS now goes back
		return `On this network, UDP is slower than TCP. To use TCP, set transport = "tls" under [session] in adit.toml.`
	case slower(tcp, udp) && set == link.TLS:
		return `On this network, UDP is faster than TCP. To use UDP, set transport = "auto" under [session] in adit.toml.`
	case slower(tcp, udp) && tls.InUse:
		return "On this network, UDP is faster than TCP. Run `adit reconnect`, which tries UDP first."
	}
	return ""
}
