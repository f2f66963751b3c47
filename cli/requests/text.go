package requests

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"adit/cli/localtime"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

// flowText says who a flow belongs to, if that is known, and how much has passed.
func flowText(r client.RequestSummary) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s in, %s out", visitorText(r.Client, r.Visitor), bytesize.Text(r.BytesIn), bytesize.Text(r.BytesOut)))
}

func writeRequest(w io.Writer, d client.RequestDetail) {
	of := localtime.Text(d.Time) + ", " + d.TunnelName
	if who := visitorText(d.Client, d.Visitor); who != "" {
		of += ", " + who
	}
	fmt.Fprintln(w, visible.Text(of))
	if d.TunnelPath != "" {
		fmt.Fprintf(w, "by the tunnel's path %s\n", visible.Text(d.TunnelPath))
	}
	if d.Error != "" {
		fmt.Fprintf(w, "%s\n", visible.Text(d.Error))
	}
	if d.Kind == "flow" {
		fmt.Fprintf(w, "%s, %s in, %s out, %.1f ms\n", d.State, bytesize.Text(d.BytesIn), bytesize.Text(d.BytesOut), d.DurationMillis)
	}
	for _, m := range []*client.Message{d.Request, d.Response} {
		if m == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", visible.Text(m.Line))
		for _, h := range m.Headers {
			value := h.Value
			if h.Redacted {
				value = "(hidden; --reveal shows it)"
			}
			fmt.Fprintf(w, "%s: %s\n", visible.Text(h.Name), visible.Text(value))
		}
		switch {
		case m.Body.Text != "":
			fmt.Fprintf(w, "\n%s\n", visible.Lines(m.Body.Text))
		case m.Body.Base64 != "":
			fmt.Fprintf(w, "\n(%s of binary data)\n", bytesize.Text(m.Body.Size))
		case d.Status == http.StatusSwitchingProtocols:
			continue // what passes then is no body
		case m.Body.Size > 0:
			fmt.Fprintf(w, "\n(%s, not kept)\n", bytesize.Text(m.Body.Size))
			continue
		}
		if m.Body.Truncated {
			fmt.Fprintf(w, "(truncated; %s in total)\n", bytesize.Text(m.Body.Size))
		}
	}
	writeMessages(w, d)
}

// writeMessages prints the messages of a WebSocket, oldest first.
func writeMessages(w io.Writer, d client.RequestDetail) {
	if len(d.Messages)+d.MessagesMissed > 0 {
		fmt.Fprintln(w)
	}
	if d.MessagesMissed > 0 {
		fmt.Fprintf(w, "(%d earlier messages were not kept)\n", d.MessagesMissed)
	}
	for _, m := range d.Messages {
		arrow := "<-" // as the visitor sees it
		if m.From == "visitor" {
			arrow = "->"
		}
		text := visible.Lines(m.Text)
		switch {
		case m.Type == "close":
			text = strings.TrimSpace("(close) " + text)
		case m.Unread:
			text = fmt.Sprintf("(%s, compressed in a way that cannot be undone)", bytesize.Text(m.Size))
		case m.Base64 != "":
			text = fmt.Sprintf("(%s of binary data)", bytesize.Text(m.Size))
		}
		if m.Truncated && !m.Unread {
			text += fmt.Sprintf(" (truncated; %s in total)", bytesize.Text(m.Size))
		}
		fmt.Fprintf(w, "%s %s %s\n", localtime.Clock(m.Time), arrow, text)
	}
}

// visitorText says who the visitor is: for a private tunnel the client's name, and the address.
func visitorText(client, visitor string) string { return strings.TrimSpace(client + " " + visitor) }
