package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/agent"
	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/definition"
	"adit/cli/localtime"
	"adit/cli/requests"
	"adit/cli/terminal"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

var shortExamples = map[string]string{
	"http": `  adit http 3000
  adit http 192.168.1.20:80 --host_header printer.lan`,
	"https": `  adit https 3000
  adit https 3000 --domain shop
  adit https https://nas.lan:8443
  adit https 3000 --path /api=8080
  adit https 3000 --request_header X-Env:demo --response_header Server:`,
	"tls": `  adit tls 8443 --domain shop`,
	"tcp": `  adit tcp 22
  adit tcp 192.168.1.20:22 --remote_port 20022`,
	"udp": `  adit udp 51820
  adit udp 192.168.1.20:27015 --remote_port 20015`,
}

// shortCommand is the short form of one type: adit http 3000.
func shortCommand(env *Env, kind string) *cobra.Command {
	f := definition.Flags{Kind: kind}
	takes := "PORT|HOST:PORT"
	if kind == "http" || kind == "https" {
		takes += "|URL"
	}
	cmd := &cobra.Command{
		Use:   kind + " " + takes,
		Short: "Publish a local port over " + kind + " until Ctrl-C",
		Long: `Publish a local port over ` + kind + ` and show what happens, until Ctrl-C. Then the
tunnel is removed; "adit tunnel create" makes one that stays.

Where no daemon runs, and none is installed as a service, it runs one until it
ends.`,
		Example: shortExamples[kind],
		Args:    command.Args(1, 1, "PORT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.SetLocal(args[0]); err != nil {
				return err
			}
			in := f.Create()
			in.Ephemeral = true
			return env.live(cmd.Context(), published{TunnelCreate: in})
		},
	}
	f.Shared(cmd.Flags())
	others := []string{"remote_port"} // the daemon refuses them, and says why
	if kind != "http" && kind != "https" {
		others = []string{"host_header", "request_header", "response_header", "path", "local_scheme"}
	}
	switch kind {
	case "tls":
		others = append(others, "remote_port")
	case "tcp":
		others = append(others, "domain")
	case "udp":
		others = append(others, "domain", "proxy_protocol")
	}
	for _, name := range others {
		_ = cmd.Flags().MarkHidden(name) // it is there
	}
	return cmd
}

// published is what a short form publishes.
type published struct {
	client.TunnelCreate

	Folder   string // whose files it is; empty: another local service's
	Password string // that visitors are asked for; empty: none
	AnyName  bool   // nobody asked for the name: where it is taken, another will do
}

// command is the short form itself.
func (p published) command() string {
	if p.Folder != "" {
		return "adit files"
	}
	return "adit " + string(p.Type)
}

// publishedTunnel is a tunnel as a short form's JSON document has it.
type publishedTunnel struct {
	client.Tunnel

	Folder   string `json:"folder,omitempty"`
	Password string `json:"password,omitempty"`
}

// live publishes what says until ctx ends, and shows what happens.
func (e *Env) live(ctx context.Context, what published) (err error) {
	// Whoever reads what is shown may go first, as in adit https 3000 | head, or
	// with a connection by ssh: that ends it, and not the process at once, which
	// would leave the tunnel public for a while.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGPIPE)
	defer stop()
	c, own, err := e.find.ClientOrEmbedded(ctx, what.command())
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(own.End(), err) }() // what ended the daemon is the cause
	held := heldTunnel{client: c, wanted: what.TunnelCreate, anyName: what.AnyName}
	defer held.release()
	told := e.tellOfWait(ctx, c)
	t, err := held.create(ctx, what.TunnelCreate)
	told()
	if err != nil {
		return daemon.WithoutToken(ctx, c, err)
	}
	view := &liveView{env: e, own: own, published: what, tunnel: t, web: c.BaseURL(), behind: true}
	watchErr := view.follow(ctx, &held)
	if own.Failed() != nil {
		return nil // nothing is left to be removed; own.End says why
	}
	// The end of ctx is the usual way here: giving the address back has its own time.
	giveBack, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemon.RemoveTimeout)
	defer cancel()
	id := view.tunnel.ID
	_, err = daemon.Patiently(giveBack, func() (struct{}, error) { return struct{}{}, c.DeleteTunnel(giveBack, id) })
	if own.Gone(view.status, err) {
		err = nil
	}
	if err != nil && !client.IsCode(err, client.ErrorCodeNotFound) {
		return fmt.Errorf("remove the tunnel %s: %w", id, err)
	}
	if watchErr == nil && view.gone {
		return fmt.Errorf("the tunnel was deleted by somebody else")
	}
	if watchErr == nil {
		e.std.Say("Removed the tunnel.")
	}
	return watchErr
}

// leastColumns is the least that a line of a request is cut to.
const leastColumns = 32

// shownRequests is how many requests the screen shows, keptRequests how many
// are known again when they change.
const (
	shownRequests = 12
	keptRequests  = 200
)

// notServed is what the daemon's log says of a visitor whom the local service
// did not take.
const notServed = "visitor not served"

// liveView is what a short form shows.
type liveView struct {
	env       *Env
	own       *daemon.Embedded
	published published
	tunnel    client.Tunnel
	web       string
	status    client.Status
	endpoint  client.Endpoint
	recent    []client.RequestSummary // newest last
	trouble   string                  // why a visitor was not served, with the time
	lost      string                  // why the daemon is not heard
	gone      bool                    // the tunnel was deleted
	drawn     string                  // what the screen shows
	drawnOn   terminal.Size           // and how large it was

	behind    bool // there may be what no event has told; see catchUp
	restarted bool // the daemon is another than the one that made the tunnel
}

// follow shows events until ctx ends or the tunnel is gone.
func (v *liveView) follow(ctx context.Context, held *heldTunnel) error {
	if v.env.std.JSON {
		if err := v.env.std.Print(publishedTunnel{v.tunnel, v.published.Folder, v.published.Password}, nil); err != nil {
			return err
		}
	} else if !v.env.std.Terminal {
		v.env.std.Say("%s", v.address())
		for _, p := range v.tunnel.Paths {
			v.env.std.Say("  %s", visible.Text(definition.PathText(p)))
		}
		if v.published.Password != "" {
			v.env.std.Say("Visitors are asked for a password, with any user name: %s", visible.Text(v.published.Password))
		}
	}
	if v.own.Runs() && !v.env.std.Terminal {
		v.env.std.Say("No daemon runs on this machine: this command runs one until it ends.")
	}
	v.draw()
	for event, err := range held.client.Events(ctx, "") {
		if err != nil {
			var refusal *client.Error
			if errors.As(err, &refusal) {
				return err
			}
			if v.lost == "" && !v.env.std.Terminal {
				v.env.std.Say("%s the daemon is not heard; waiting for it", localtime.Clock(time.Now()))
			}
			v.lost, v.behind = err.Error(), true
			v.draw()
			if v.own.Failed() != nil {
				return nil
			}
			if v.own.TakeOver(ctx, v.status) && !v.env.std.Terminal {
				v.env.std.Say("%s this command runs the daemon now", localtime.Clock(time.Now()))
			}
			continue
		}
		if v.lost != "" && !v.env.std.Terminal {
			v.env.std.Say("%s the daemon is back", localtime.Clock(time.Now()))
		}
		v.lost = ""
		if err := v.take(event); err != nil {
			return err
		}
		if v.behind && !v.gone {
			if err := v.catchUp(ctx, held); err != nil {
				return err
			}
		}
		if v.gone {
			return nil
		}
		if err := lasting(v.status); err != nil {
			return err
		}
		v.draw()
	}
	return nil
}

// lasting is why the session does not come back by itself; nil if it may. A token that
// was revoked never does, and visitors would be waited for in vain. Who logs out means
// what is public now, and not that the next token publishes it again.
func lasting(st client.Status) error {
	if st.State == "unconfigured" {
		return errors.New("nobody is served any more: there is no auth token, as after `adit logout`; run `adit login TOKEN`, and this again")
	}
	if st.State != "rejected" || agent.RefusedForNow(st) {
		return nil
	}
	return fmt.Errorf("nobody is served any more: %s", visible.Text(st.LastError))
}

// take notes an event.
func (v *liveView) take(event client.Event) error {
	switch event.Type {
	case client.EventStatus:
		var st client.Status
		if err := event.Into(&st); err != nil {
			return err
		}
		v.takeStatus(st)
	case client.EventMissed:
		var m client.MissedEvent
		if err := event.Into(&m); err != nil {
			return err
		}
		v.behind, v.restarted = true, v.restarted || m.Restarted
	case client.EventTunnel:
		var e client.TunnelEvent
		if err := event.Into(&e); err != nil {
			return err
		}
		if e.Tunnel.ID == v.tunnel.ID {
			v.gone = e.Action == "deleted"
			was := v.address()
			v.tunnel = e.Tunnel
			if now := v.address(); now != was && !v.gone && !v.env.std.Terminal {
				v.env.std.Say("%s", now)
			}
		}
	case client.EventEndpoint:
		var e client.EndpointEvent
		if err := event.Into(&e); err != nil {
			return err
		}
		if e.Endpoint.TunnelID == v.tunnel.ID {
			if v.endpoint.Error != "" && e.Endpoint.Error == "" {
				v.trouble = ""
				if !v.env.std.Terminal {
					v.env.std.Say("%s the local service is reached again", localtime.Clock(time.Now()))
				}
			}
			v.endpoint = e.Endpoint
		}
	case client.EventLog:
		var l client.LogEntry
		if err := event.Into(&l); err != nil {
			return err
		}
		if l.Message == notServed && l.Fields["tunnel"] == v.tunnel.ID {
			v.trouble = fmt.Sprintf("%s a visitor was not served: %s", localtime.Clock(l.Time), visible.Text(fmt.Sprint(l.Fields["reason"])))
			if !v.env.std.Terminal {
				v.env.std.Say("%s", v.trouble)
			}
		}
	case client.EventRequest:
		var r client.RequestSummary
		if err := event.Into(&r); err != nil {
			return err
		}
		if r.TunnelID == v.tunnel.ID {
			v.note(r)
		}
	}
	return nil
}

// catchUp asks for what no event has told: what came before the first one, or
// while the daemon was not heard. A daemon that started again has forgotten the
// tunnel: it is made anew.
func (v *liveView) catchUp(ctx context.Context, held *heldTunnel) error {
	st, err := held.client.Status(ctx)
	if err != nil {
		return v.later(ctx, err)
	}
	v.takeStatus(st)
	was := v.address()
	t, err := held.client.Tunnel(ctx, v.tunnel.ID)
	if client.IsCode(err, client.ErrorCodeNotFound) {
		if !v.restarted && !st.StartedAt.After(v.tunnel.CreatedAt) {
			v.gone = true
			return nil
		}
		if !v.env.std.Terminal {
			v.env.std.Say("%s the daemon started again; making the tunnel anew", localtime.Clock(time.Now()))
		}
		v.tunnel.State = client.TunnelStateStarting
		v.draw()
		t, err = held.again(ctx, v.tunnel)
		v.endpoint, was = client.Endpoint{}, "" // the address is said again
	}
	if err != nil {
		return v.later(ctx, err)
	}
	v.tunnel, v.behind, v.restarted = t, false, false
	if now := v.address(); now != was && !v.env.std.Terminal {
		v.env.std.Say("%s", now)
	}
	return nil
}

// later is nil if err says that the daemon is lost again: the next event is the
// time to ask.
func (v *liveView) later(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, client.ErrNotRunning) {
		return nil
	}
	return err
}

// takeStatus notes how the agent is.
func (v *liveView) takeStatus(st client.Status) {
	was := v.status
	v.status = st
	if was.State != st.State && !v.env.std.Terminal {
		v.env.std.Say("%s session %s", localtime.Clock(time.Now()), agent.StateReason(st))
	}
}

// address is where visitors go, and where they arrive.
func (v *liveView) address() string {
	from := v.tunnel.PublicURL
	if from == "" {
		from = "(no public address yet: the tunnel is " + string(v.tunnel.State) + ")"
	}
	to := v.published.Folder
	if to == "" {
		to = definition.LocalText(v.tunnel)
	}
	return visible.Text(from + " -> " + to)
}

// note keeps a request; one that is known already has changed. It is logged
// when it ends, once.
func (v *liveView) note(r client.RequestSummary) {
	known := slices.IndexFunc(v.recent, func(old client.RequestSummary) bool { return old.ID == r.ID })
	ended := r.State != "open" && (known < 0 || v.recent[known].State == "open")
	if ended && !v.env.std.Terminal {
		v.env.std.Say("%s", requests.Line(r, v.tunnel, requests.LineColumns))
	}
	if known >= 0 {
		v.recent[known] = r
		return
	}
	v.recent = append(v.recent, r)
	if len(v.recent) > keptRequests {
		v.recent = v.recent[1:]
	}
}

// draw shows what has changed. It writes over what the screen shows instead of
// clearing it first, which flickers.
func (v *liveView) draw() {
	if !v.env.std.Terminal || v.env.std.JSON {
		return
	}
	screen := v.env.std.Size()
	var head []string
	row := func(name, value string) { head = append(head, fmt.Sprintf("%-12s %s", name, visible.Text(value))) }
	state := agent.StateText(v.status)
	if v.status.State == "" {
		state = "asking the daemon"
	}
	if v.lost != "" {
		state = "the daemon is not heard; waiting for it"
	}
	width := requests.LineColumns
	if screen.Columns > 0 {
		width = max(screen.Columns, leastColumns)
	}
	head = append(head, terminal.Pad("adit", min(width, 52)-len("Ctrl-C ends"))+"Ctrl-C ends", "")
	row("Session", state)
	if v.status.LastError != "" && v.lost == "" {
		row("Reason", v.status.LastError)
	}
	row("Forwarding", v.address())
	for _, p := range v.tunnel.Paths {
		row("", definition.PathText(p))
	}
	if v.published.Password != "" {
		row("Password", v.published.Password+" (any user name)")
	}
	row("Tunnel", strings.TrimSpace(string(v.tunnel.State)+" "+v.tunnel.Error))
	row("Inspector", v.web)
	if v.own.Runs() {
		row("Daemon", "this command runs it, and ends it")
	}
	row("Visitors", fmt.Sprintf("%d now, %d in all; %s in, %s out", v.endpoint.Connections.Open,
		v.endpoint.Connections.Total, bytesize.Text(v.endpoint.Bytes.In), bytesize.Text(v.endpoint.Bytes.Out)))
	if v.trouble != "" {
		row("Trouble", v.trouble)
	}
	head = append(head, "")
	var list []string
	for _, r := range v.recent[max(0, len(v.recent)-shownRequests):] {
		list = append(list, requests.Line(r, v.tunnel, width))
	}
	if text := screen.Fit(head, list); text != v.drawn || screen != v.drawnOn {
		clearing := "\x1b[H"
		if v.drawn == "" || screen != v.drawnOn {
			clearing = "\x1b[H\x1b[2J"
		}
		v.drawn, v.drawnOn = text, screen
		// To the end of each line, and below the last.
		_, _ = io.WriteString(v.env.std.Out, clearing+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
	}
}
