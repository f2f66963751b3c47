package publish

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"adit/cli/agent"
	"adit/cli/definition"
	"adit/cli/localtime"
	"adit/cli/requests"
	"adit/cli/stdio"
	"adit/cli/terminal"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

// keptRequests is how many requests are remembered, to recognise them when they change.
const keptRequests = 200

// view is what a short form shows: on a terminal a screen that is redrawn, else a line for each
// event, or one JSON document.
type view struct {
	std       *stdio.Streams
	ownDaemon func() bool // whether the command runs the daemon itself
	published published
	web       string

	tunnel   client.Tunnel
	status   client.Status
	endpoint client.Endpoint
	recent   []client.RequestSummary // newest last
	trouble  string                  // why a visitor was not served, with the time
	lost     string                  // why the daemon is not heard

	screen drawing
}

// begin shows what is published.
func (v *view) begin() error {
	if v.std.JSON {
		if err := v.std.Print(publishedTunnel{v.tunnel, v.published.Folder, v.published.User, v.published.Password, v.published.Ends.UTC()}, nil); err != nil {
			return err
		}
	}
	v.log("%s", v.address())
	for _, p := range v.tunnel.Paths {
		v.log("  %s", visible.Text(definition.PathText(p)))
	}
	if p := v.published; p.Password != "" {
		v.log("Visitors are asked for a password, with %s: %s", p.userName(), visible.Text(p.Password))
	}
	if !v.published.Ends.IsZero() {
		v.log("Ends by itself at %s.", localtime.Text(v.published.Ends))
	}
	if v.ownDaemon() {
		v.log("No daemon runs on this machine: this command runs one until it ends.")
	}
	v.draw()
	return nil
}

// log writes a line if no screen is drawn.
func (v *view) log(format string, args ...any) {
	if !v.std.Terminal {
		v.std.Say(format, args...)
	}
}

// lose records that the daemon cannot be heard.
func (v *view) lose(err error) {
	if v.lost == "" {
		v.log("%s the daemon is not heard; waiting for it", localtime.Clock(time.Now()))
	}
	v.lost = err.Error()
	v.draw()
}

// hear records that the daemon can be heard.
func (v *view) hear() {
	if v.lost != "" {
		v.log("%s the daemon is back", localtime.Clock(time.Now()))
	}
	v.lost = ""
}

// takeStatus records the agent's status.
func (v *view) takeStatus(st client.Status) {
	was := v.status
	v.status = st
	if was.State != st.State {
		v.log("%s session %s", localtime.Clock(time.Now()), agent.StateReason(st))
	}
}

// takeTunnel records the tunnel's state.
func (v *view) takeTunnel(t client.Tunnel) {
	was := v.address()
	v.tunnel = t
	if now := v.address(); now != was {
		v.log("%s", now)
	}
}

// startAnew records that the daemon has forgotten the tunnel.
func (v *view) startAnew() {
	v.log("%s the daemon started again; making the tunnel anew", localtime.Clock(time.Now()))
	v.tunnel.State = client.TunnelStateStarting
	v.draw()
	v.endpoint = client.Endpoint{}
}

// takeNewTunnel records the tunnel that was created in place of the previous one.
func (v *view) takeNewTunnel(t client.Tunnel) {
	v.tunnel = t
	v.log("%s", v.address()) // said again
}

// takeEndpoint records the state of the tunnel's public face.
func (v *view) takeEndpoint(e client.Endpoint) {
	if v.endpoint.Error != "" && e.Error == "" {
		v.trouble = ""
		v.log("%s the local service is reached again", localtime.Clock(time.Now()))
	}
	v.endpoint = e
}

// takeTrouble records that a visitor was not served, as reported in the daemon's log.
func (v *view) takeTrouble(l client.LogEntry) {
	v.trouble = fmt.Sprintf("%s a visitor was not served: %s", localtime.Clock(l.Time), visible.Text(fmt.Sprint(l.Fields["reason"])))
	v.log("%s", v.trouble)
}

// takeRequest records a new or changed request. It is logged once, when it ends.
func (v *view) takeRequest(r client.RequestSummary) {
	known := slices.IndexFunc(v.recent, func(old client.RequestSummary) bool { return old.ID == r.ID })
	ended := r.State != "open" && (known < 0 || v.recent[known].State == "open")
	if ended {
		v.log("%s", requests.Line(r, v.tunnel, requests.LineColumns))
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

// address returns where visitors go, and where they arrive.
func (v *view) address() string {
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

// shownRequests is how many requests the screen shows.
const shownRequests = 12

// leastColumns is the smallest width to which a request's line is cut.
const leastColumns = 32

// draw shows on a terminal what has changed.
func (v *view) draw() {
	if !v.std.Terminal || v.std.JSON {
		return
	}
	size := v.std.Size()
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
	if size.Columns > 0 {
		width = max(size.Columns, leastColumns)
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
	if p := v.published; p.Password != "" {
		row("Password", p.Password+" ("+p.userName()+")")
	}
	if !v.published.Ends.IsZero() {
		row("Ends", localtime.Text(v.published.Ends))
	}
	row("Tunnel", strings.TrimSpace(string(v.tunnel.State)+" "+v.tunnel.Error))
	row("Inspector", v.web)
	if v.ownDaemon() {
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
	v.screen.show(v.std.Out, size, size.Fit(head, list))
}
