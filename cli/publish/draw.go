package publish

import (
	"fmt"
	"io"
	"strings"

	"adit/cli/agent"
	"adit/cli/definition"
	"adit/cli/requests"
	"adit/cli/terminal"
	"adit/internal/bytesize"
	"adit/internal/visible"
)

// shownRequests is how many requests the screen shows.
const shownRequests = 12

// leastColumns is the least that a line of a request is cut to.
const leastColumns = 32

// draw shows what has changed. It writes over what the screen shows instead of
// clearing it first, which flickers.
func (v *view) draw() {
	if !v.std.Terminal || v.std.JSON {
		return
	}
	screen := v.std.Size()
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
	if text := screen.Fit(head, list); text != v.drawn || screen != v.drawnOn {
		clearing := "\x1b[H"
		if v.drawn == "" || screen != v.drawnOn {
			clearing = "\x1b[H\x1b[2J"
		}
		v.drawn, v.drawnOn = text, screen
		// To the end of each line, and below the last.
		_, _ = io.WriteString(v.std.Out, clearing+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
	}
}
