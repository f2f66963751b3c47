// Package sink sends access events, audit entries and news of clients on to an operator's own
// systems: as signed webhooks, or as syslog. What cannot be sent waits in a
// bounded queue and is tried again with back-off; a visitor never waits for it.
package sink

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/wire"
)

// Types of sinks, and of what they are sent.
const (
	Webhook = "webhook"
	Syslog  = "syslog"

	Access  = "access"
	Audit   = "audit"
	Clients = "client"
)

const (
	maxQueue   = 10_000
	maxBatch   = 500
	maxBytes   = 1 << 20     // of a batch, unless one event is larger: what web servers take by themselves
	gather     = time.Second // for a batch to fill
	sendTime   = 15 * time.Second
	firstPause = time.Second
	lastPause  = time.Minute
	maxTries   = 12
	lastWords  = 3 * time.Second // to send what waits at the end
)

// Config is a sink as it is stored.
type Config struct {
	Type        string   `json:"type"`
	URL         string   `json:"url,omitempty"`      // webhook
	Secret      string   `json:"secret,omitempty"`   // webhook
	Address     string   `json:"address,omitempty"`  // syslog: udp://, tcp:// or tls://HOST:PORT
	CA          string   `json:"ca,omitempty"`       // syslog by tls, PEM
	Facility    *int     `json:"facility,omitempty"` // syslog; nil: 16, local0
	Events      []string `json:"events,omitempty"`   // empty: access
	RefusedOnly bool     `json:"refused_only,omitempty"`
	Enabled     *bool    `json:"enabled,omitempty"` // nil: yes
}

// FieldError is a sink's first fault.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

var validSinkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,30}[a-z0-9])?$`)

// ValidName reports whether a sink can have a name.
func ValidName(name string) bool { return validSinkName.MatchString(name) }

// Parse reads a sink strictly and checks it. private lets it reach private addresses.
func Parse(data []byte, private bool) (Config, error) {
	var c Config
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return c, &FieldError{strings.Trim(name, `"`), "there is no such field"}
		}
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return c, &FieldError{kind.Field, "must not be a JSON " + kind.Value}
		}
		return c, &FieldError{"sink", "is not a JSON object"}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c, &FieldError{"sink", "something follows the JSON object"}
	}
	return c, c.check(private)
}

func (c *Config) check(private bool) error {
	if len(c.Events) == 0 {
		c.Events = []string{Access}
	}
	for i, e := range c.Events {
		if !slices.Contains([]string{Access, Audit, Clients}, e) || slices.Contains(c.Events[:i], e) {
			return &FieldError{fmt.Sprintf("events[%d]", i), "must be access, audit or client, each once"}
		}
	}
	switch c.Type {
	case Webhook:
		u, err := url.Parse(c.URL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(c.URL) > 2048:
			return &FieldError{"url", "must be a URL as https://siem.example.com/adit"}
		case u.User != nil:
			return &FieldError{"url", "must not have a user and password; use secret"}
		case c.Address != "" || c.CA != "" || c.Facility != nil:
			return &FieldError{"address", "address, ca and facility are syslog's"}
		case len(c.Secret) > 512:
			return &FieldError{"secret", "has more than 512 bytes"}
		}
		return hostAllowed("url", u.Hostname(), private)
	case Syslog:
		u, err := url.Parse(c.Address)
		if err != nil || !slices.Contains([]string{"udp", "tcp", "tls"}, u.Scheme) || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return &FieldError{"address", "must be udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT"}
		}
		switch {
		case c.URL != "" || c.Secret != "":
			return &FieldError{"url", "url and secret are a webhook's"}
		case c.Facility != nil && (*c.Facility < 0 || *c.Facility > 23):
			return &FieldError{"facility", "must be 0 to 23"}
		case c.CA != "" && u.Scheme != "tls":
			return &FieldError{"ca", "is for tls:// only"}
		}
		if _, err := tlsConfig(u.Hostname(), c.CA); err != nil {
			return &FieldError{"ca", "has no certificate in PEM"}
		}
		return hostAllowed("address", u.Hostname(), private)
	}
	return &FieldError{"type", "must be webhook or syslog"}
}

// hostAllowed refuses what is plainly not public; names are looked at when they
// are dialled.
func hostAllowed(field, host string, private bool) error {
	if private {
		return nil
	}
	a, err := netip.ParseAddr(host)
	if err == nil && !public(a) || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return &FieldError{field, "is not a public address; set [sinks] allow_private = true in relay.toml to reach it"}
	}
	return nil
}

// public reports whether an address is one of the Internet at large.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// special are blocks that are no host's on the Internet, or translate to such
// (RFC 6890 and its registries).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

var errPrivate = errors.New("the address is not public; set [sinks] allow_private = true in relay.toml to reach it")

// dialer dials public addresses only, unless private: it looks at the address
// that a name has led to, so that a name cannot lead elsewhere later.
func dialer(private bool) *net.Dialer {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if !private {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !public(ap.Addr().WithZone("")) {
				return errPrivate
			}
			return nil
		}
	}
	return d
}

// Event is one thing that is sent.
type Event struct {
	Type   string       `json:"type"`
	Access *wire.Access `json:"access,omitempty"`
	Audit  *audit.Entry `json:"audit,omitempty"`
	Client *Client      `json:"client,omitempty"`
}

// States of a Client.
const (
	Connected = "connected"
	Away      = "away"
	Faulty    = "error" // an agent reports that something went wrong at its side
)

// Client is news of a client.
type Client struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state"`
	Client   string    `json:"client"` // its name
	ClientID string    `json:"client_id"`
	// Since is when the last agent of one that is away was there; nil: it is not away.
	Since *time.Time `json:"since,omitempty"`
	// PublicURL and Message are of an error; an error need not be a tunnel's.
	PublicURL string `json:"public_url,omitempty"`
	Message   string `json:"message,omitempty"`
}

// State is how a sink fares since it began.
type State struct {
	Sent, Failed, Dropped uint64
	Queued                int
	LastError             string
	LastErrorAt           time.Time
	LastSentAt            time.Time
}

// permanent is an error that another try would not mend.
type permanent struct{ error }

// sender takes a batch to where it goes. The id is the batch's, at each try.
type sender interface {
	send(ctx context.Context, id string, batch []Event) error
	close()
}

// setup is a configuration at work.
type setup struct {
	cfg      Config
	sender   sender
	replaced chan struct{} // closed when another has taken its place
}

func (s *setup) isReplaced() bool {
	select {
	case <-s.replaced:
		return true
	default:
		return false
	}
}

// Sink queues events and sends them. Its Run must be running.
type Sink struct {
	opts    Options       // but its Config
	pause   time.Duration // before the second try
	arrived chan struct{} // there is something to look at; room for one
	used    *setup        // Run's: the one it took last, whose connections may be open

	mu     sync.Mutex
	setup  *setup
	queue  []Event
	trying int // events that are off the queue, and neither taken nor given up
	state  State
}

// Options are what a sink is made of.
type Options struct {
	Name    string
	Node    string
	Config  Config // checked
	Private bool   // private addresses may be reached
	Log     *slog.Logger
}

// New returns a sink; nothing is sent until it is run.
func New(o Options) *Sink {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Sink{opts: o, pause: firstPause, arrived: make(chan struct{}, 1), setup: newSetup(o)}
}

func newSetup(o Options) *setup {
	now := &setup{cfg: o.Config, replaced: make(chan struct{})}
	if o.Config.Type == Syslog {
		now.sender = newSyslog(o)
	} else {
		now.sender = newWebhook(o)
	}
	return now
}

// Set replaces the configuration by another that was checked. What waits is sent
// as that says, as far as it wants it; while it is not enabled all of it waits.
func (s *Sink) Set(c Config) {
	o := s.opts
	o.Config = c
	next := newSetup(o)
	s.mu.Lock()
	old := s.setup
	s.setup = next
	s.state.LastError, s.state.LastErrorAt = "", time.Time{} // it was the old one's
	s.mu.Unlock()
	close(old.replaced)
	s.look()
}

// look has Run look at the queue.
func (s *Sink) look() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// On reports whether the sink is enabled.
func (c Config) On() bool { return c.Enabled == nil || *c.Enabled }

// wants reports whether an event goes to the sink, while it is enabled.
func (c Config) wants(e Event) bool {
	return slices.Contains(c.Events, e.Type) && (e.Access == nil || !c.RefusedOnly || e.Access.Refused != "")
}

// Add queues an event, if the sink wants it. It never waits: where the queue is
// full the oldest is dropped.
func (s *Sink) Add(e Event) {
	s.mu.Lock()
	if c := s.setup.cfg; !c.On() || !c.wants(e) {
		s.mu.Unlock()
		return
	}
	if len(s.queue) >= maxQueue {
		s.queue = append(s.queue[:0:0], s.queue[maxQueue/10:]...)
		s.state.Dropped += maxQueue / 10
	}
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.look()
}

// State returns how the sink fares.
func (s *Sink) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.Queued = len(s.queue) + s.trying
	return st
}

// Test sends one event now, beside the queue.
func (s *Sink) Test(ctx context.Context, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return s.now().sender.send(ctx, crand.Text(), []Event{e})
}

// Close gives back what Test used, of a sink that is not run.
func (s *Sink) Close() { s.now().sender.close() }

func (s *Sink) now() *setup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setup
}

// Run sends what is queued until ctx ends, and then for a moment what is left.
func (s *Sink) Run(ctx context.Context) error {
	defer s.Close()
	for {
		select {
		case <-s.arrived:
		case <-ctx.Done():
			return s.finish(s.take())
		}
		full := time.NewTimer(gather)
		select {
		case <-full.C:
		case <-ctx.Done():
			full.Stop()
			return s.finish(s.take())
		}
		for now, id, batch := s.take(); len(batch) > 0; now, id, batch = s.take() {
			left := s.deliver(ctx, now, id, batch)
			switch {
			case left:
				return s.finish(now, id, batch)
			case ctx.Err() != nil:
				return s.finish(s.take())
			}
		}
	}
}

// take takes a batch off the queue, with an id of its own, and the setup to send it
// with. There is none while the sink is not enabled.
func (s *Sink) take() (now *setup, id string, batch []Event) {
	s.mu.Lock()
	now = s.setup
	for now.cfg.On() && len(s.queue) > 0 && len(batch) == 0 {
		n := batchOf(s.queue)
		// Another setup may have wanted what this one does not.
		batch = slices.DeleteFunc(s.queue[:n:n], func(e Event) bool { return !now.cfg.wants(e) })
		s.queue = s.queue[n:]
	}
	s.trying = len(batch)
	s.mu.Unlock()
	if s.used != nil && s.used != now {
		s.used.sender.close() // here, for it waits for what is under way
	}
	s.used = now
	return now, crand.Text(), batch
}

// batchOf is how many of the waiting events are sent together.
func batchOf(queue []Event) int {
	size := 0
	for i, e := range queue {
		if e.Access != nil {
			size += e.Access.MaxJSON()
		}
		if e.Audit != nil {
			size += 1024 + 6*(len(e.Audit.Target)+len(e.Audit.Detail))
		}
		if e.Client != nil {
			size += 512 + 6*len(e.Client.Message)
		}
		if i == maxBatch || i > 0 && size > maxBytes {
			return i
		}
	}
	return len(queue)
}

func (s *Sink) putBack(batch []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.trying = append(slices.Clone(batch), s.queue...), 0
}

// deliver tries a batch until it is taken or given up. If another setup takes this
// one's place first, it goes back into the queue. left reports that ctx has ended
// before: the receiver may have it and not have answered yet.
func (s *Sink) deliver(ctx context.Context, now *setup, id string, batch []Event) (left bool) {
	pause := s.pause
	for try := 1; ; try++ {
		err := s.once(ctx, now, id, batch)
		if err == nil {
			return false
		}
		var p permanent
		final := errors.As(err, &p) || try == maxTries
		if final {
			pause = 0
		}
		wait := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-wait.C:
		case <-ctx.Done():
		case <-now.replaced:
		}
		wait.Stop()
		switch {
		case now.isReplaced():
			s.putBack(batch)
			return false
		case ctx.Err() != nil:
			return true
		case final:
			s.drop(false, err)
			return false
		}
		pause = min(pause*2, lastPause)
	}
}

func (s *Sink) once(ctx context.Context, now *setup, id string, batch []Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err := now.sender.send(ctx, id, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().UTC()
	if err != nil {
		s.state.Failed++
		if now == s.setup {
			s.state.LastError, s.state.LastErrorAt = err.Error(), at
		}
		return err
	}
	s.state.Sent += uint64(len(batch))
	s.trying = 0
	s.state.LastSentAt = at
	return nil
}

// finish tries once what is left: a batch, and what waits behind it.
func (s *Sink) finish(now *setup, id string, batch []Event) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	for ; len(batch) > 0; now, id, batch = s.take() {
		if err := s.once(ctx, now, id, batch); err != nil {
			s.drop(true, err)
		}
	}
	return nil
}

// drop gives up the batch that was tried, and with all what waits behind it, too.
func (s *Sink) drop(all bool, err error) {
	s.mu.Lock()
	count := s.trying
	if s.trying = 0; all {
		count += len(s.queue)
		s.queue = nil
	}
	s.state.Dropped += uint64(count)
	s.mu.Unlock()
	s.opts.Log.Warn("sink did not take events; they are dropped", "sink", s.opts.Name, "count", count, "error", err)
}
