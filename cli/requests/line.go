package requests

import (
	"fmt"

	"adit/cli/localtime"
	"adit/cli/terminal"
	"adit/internal/visible"
	"adit/internal/wildcard"
	"adit/localapi/client"
)

// LineColumns is how many columns a line of a request has at most.
const LineColumns = 96

// timeColumns is what the time that a request took has of its line.
const timeColumns = 12

// asked is what a request is for: by its path, and by its host where the tunnel has
// all names below one.
func asked(r client.RequestSummary, t client.Tunnel) string {
	if wildcard.Is(t.Domain) {
		return r.Method + " " + r.Host + r.Path
	}
	return r.Method + " " + r.Path
}

// Line is a tunnel's request on one line of at most so many columns. What a
// visitor sent is shown without what a screen would obey.
func Line(r client.RequestSummary, t client.Tunnel, columns int) string {
	result := r.State
	if r.Status != 0 {
		result = fmt.Sprint(r.Status)
	}
	line := fmt.Sprintf("%s %-6s %s", localtime.Clock(r.Time), result, visible.Text(asked(r, t)))
	if r.Kind == "flow" {
		line = fmt.Sprintf("%s %-6s %s", localtime.Clock(r.Time), result, visible.Text(flowText(r)))
	}
	columns = min(columns, LineColumns) - timeColumns
	line = terminal.Cut(line, columns)
	if r.State != "open" {
		line = fmt.Sprintf("%s %8.1f ms", terminal.Pad(line, columns), r.DurationMillis)
	}
	return line
}
