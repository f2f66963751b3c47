package requests

import (
	"fmt"

	"adit/cli/localtime"
	"adit/cli/terminal"
	"adit/internal/visible"
	"adit/internal/wildcard"
	"adit/localapi/client"
)

// LineColumns is the greatest width of a request's line.
const LineColumns = 96

// timeColumns is the width of the duration in a request's line.
const timeColumns = 12

// asked returns what was requested: the path and, if the tunnel covers all names below one, the
// host.
func asked(r client.RequestSummary, t client.Tunnel) string {
	if wildcard.Is(t.Domain) {
		return r.Method + " " + r.Host + r.Path
	}
	return r.Method + " " + r.Path
}

// Line returns a tunnel's request on one line of at most that many columns. Control characters that
// a visitor sent are made harmless.
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
