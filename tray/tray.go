// Package tray is the companion in the desktop's tray: an icon that shows the daemon's state, and a
// menu for what people do most. What the menu shows is a pure function of what the daemon reports
// (Menu, Face, Notices); drawing, and everything that differs between desktops, is behind the small
// interface screen.
package tray

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Locked is the state of a daemon that answers but asks for a Bearer token that this person's tray
// does not have.
const Locked = "locked"

// Status is what the tray shows of the daemon. The states are those of the local API, and Locked,
// about which nothing more is known.
type Status struct {
	Configured bool
	State      string
	Relay      string
	LastError  string
	Version    string
}

// Endpoint is a running tunnel's public face.
type Endpoint struct {
	TunnelID  string
	Name      string
	PublicURL string
	Local     string
	State     string
}

// Down is the State of an endpoint whose local service could not be reached.
const Down = "down"

// Daemon is what the tray needs from the local API.
type Daemon interface {
	// Look returns the current status and endpoints.
	Look(ctx context.Context) (Status, []Endpoint, error)
	// Order carries out pause, resume or reconnect.
	Order(ctx context.Context, order string) error
	// Watch calls changed after each change, until the stream of events ends.
	Watch(ctx context.Context, changed func()) error
}

// Config configures a tray.
type Config struct {
	Daemon Daemon
	// WebUI returns the current URL of the Web UI, signed in if it has a login.
	WebUI func(ctx context.Context, place string) (string, error)
	// StartDaemon starts the daemon if it is not running. If nil, this is not offered.
	StartDaemon func(ctx context.Context) error
	// Command is what starts this tray, for "Start at login". Once its program has been replaced
	// with another one, Run returns ErrReplaced.
	Command []string
	// Version is shown by About.
	Version string
	// Log receives problems. If nil, they are not logged.
	Log *slog.Logger
}

// ErrNoDesktop is matched if there is no desktop session in which to show an icon.
var ErrNoDesktop = errors.New("there is no desktop session here (no session bus): open the Web UI in a browser instead")

// errSessionEnded ends Run without an error: the person has logged out.
var errSessionEnded = errors.New("the desktop session has ended")

// screen draws what it is given. Clicks are sent on the channel with which it was created.
type screen interface {
	// loop runs in the goroutine that called Run, as some desktops require. It calls ready once and
	// returns when ctx ends.
	loop(ctx context.Context, ready func()) error
	show(p picture)
}

// desk is the rest of the desktop.
type desk interface {
	notify(n Notice) error
	open(url string) error
	copyText(text string) error
	startsAtLogin() bool
	setStartAtLogin(command []string, on bool) error
	panelLook() Look
}

// picture is everything that can be seen.
type picture struct {
	icon  Icon
	look  Look
	title string
	items []Item
}

// Run shows the tray until the person quits it, ctx or the desktop session ends, or the program is
// removed or replaced. It must be called in the main goroutine.
func Run(ctx context.Context, config Config) error {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	clicks := make(chan Action, 8)
	d, s, err := system(clicks, config.Log)
	if err != nil {
		return err
	}
	if len(config.Command) > 0 {
		if err := comeBack(config.Command); err != nil {
			config.Log.Debug("an installer may end the tray for good", "err", err)
		}
	}
	c := &companion{config: config, desk: d, screen: s, clicks: clicks, words: wordsFor(languages()), seen: make(map[address]bool)}
	return c.run(ctx)
}

type companion struct {
	config Config
	desk   desk
	screen screen
	clicks chan Action
	words  words

	// Used only by keep.
	view    View
	seen    map[address]bool // what was there at any look
	shown   picture
	atLogin bool
	loginAt time.Time // when atLogin was asked for
}

func (c *companion) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var replaced error
	ready := func() {
		wg.Go(func() {
			defer cancel()
			c.keep(ctx)
		})
		if len(c.config.Command) == 0 {
			return
		}
		wg.Go(func() {
			defer cancel()
			if err := watchProgram(ctx, c.config.Command[0]); errors.Is(err, ErrReplaced) {
				replaced = err
			}
		})
	}
	err := c.screen.loop(ctx, ready)
	cancel()
	wg.Wait()
	if err == nil {
		err = replaced
	}
	if errors.Is(err, errSessionEnded) {
		c.config.Log.Info("the desktop session has ended")
		return nil
	}
	return err
}

// How often to look at the daemon without an event: rarely while its event stream is open, often
// while it is missing; and how long it has to answer.
const (
	idleLook    = 30 * time.Second
	missingLook = 2 * time.Second
	lookTime    = 5 * time.Second
)

// keep shows each change and carries out each click, until ctx ends or the person quits.
func (c *companion) keep(ctx context.Context) {
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting to be looked at already
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { c.watch(ctx, signal) })

	c.look(ctx, true)
	for {
		wait := idleLook
		if !c.view.Reachable {
			wait = missingLook
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case action := <-c.clicks:
			if action.Kind == Quit {
				timer.Stop()
				return
			}
			c.act(ctx, action)
			c.look(ctx, false)
		case <-changed:
			c.look(ctx, false)
		case <-timer.C:
			c.look(ctx, false)
		}
		timer.Stop()
	}
}

// watch keeps the stream of events open.
func (c *companion) watch(ctx context.Context, changed func()) {
	for {
		err := c.config.Daemon.Watch(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		c.config.Log.Debug("the stream of events ended", "err", err)
		changed()
		select {
		case <-ctx.Done():
			return
		case <-time.After(missingLook):
		}
	}
}

// look asks the daemon and shows what has changed. The first look sends no notifications: what is
// there at the start is no news.
func (c *companion) look(ctx context.Context, first bool) {
	before := c.view
	if time.Since(c.loginAt) >= idleLook { // not for each event: some desktops run a program for it
		c.atLogin, c.loginAt = c.desk.startsAtLogin(), time.Now()
	}
	c.view = View{CanStart: c.config.StartDaemon != nil, AtLogin: c.atLogin, Version: c.config.Version, Note: before.Note}
	asking, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	status, endpoints, err := c.config.Daemon.Look(asking)
	if ctx.Err() != nil {
		return
	}
	// If nobody is there, the system says so at once.
	c.view.Silent = err != nil && asking.Err() != nil
	if err == nil {
		c.view.Reachable, c.view.Status, c.view.Endpoints = true, status, endpoints
		if before.Reachable != c.view.Reachable || before.Status != status {
			c.view.Note = "" // it was about what is no longer so
		}
	}
	c.view.Lost = c.view.lostSince(before)
	icon, title := Face(c.view, c.words)
	next := picture{icon: icon, look: c.desk.panelLook(), title: title, items: Menu(c.view, c.words)}
	if first || !samePicture(c.shown, next) {
		c.screen.show(next)
		c.shown = next
	}
	notices := Notices(before, c.view, c.seen, c.words)
	for _, e := range c.view.Endpoints {
		c.seen[e.address()] = true
	}
	if first {
		return
	}
	for _, n := range notices {
		c.tell(n)
	}
}

func (c *companion) tell(n Notice) {
	n.Body = clip(n.Body, maxNotice)
	if err := c.desk.notify(n); err != nil {
		c.config.Log.Debug("the desktop shows no notification", "err", err)
	}
}

// act carries out what was clicked. Errors are shown to the person, who is waiting for something to
// happen.
func (c *companion) act(ctx context.Context, action Action) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	var err error
	switch action.Kind {
	case OpenWebUI:
		var address string
		if address, err = c.config.WebUI(ctx, action.Arg); err == nil {
			err = c.desk.open(address)
		}
	case OpenURL:
		err = c.desk.open(action.Arg)
	case CopyURL:
		if err = c.desk.copyText(action.Arg); err == nil {
			c.tell(Notice{Title: c.words.copied, Body: action.Arg})
		}
	case Order:
		err = c.config.Daemon.Order(ctx, action.Arg)
	case StartDaemon:
		if c.config.StartDaemon != nil {
			err = c.config.StartDaemon(ctx)
		}
	case AtLogin:
		err = c.desk.setStartAtLogin(c.config.Command, !c.view.AtLogin)
		c.loginAt = time.Time{}
	}
	if err != nil {
		c.config.Log.Warn("a click had no effect", "action", string(action.Kind), "err", err)
		c.view.Note = err.Error()
		c.tell(Notice{Title: c.words.trouble, Body: err.Error()})
	}
}

func samePicture(a, b picture) bool {
	return a.icon == b.icon && a.look == b.look && a.title == b.title && slices.EqualFunc(a.items, b.items, sameItem)
}
