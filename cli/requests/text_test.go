package requests

import (
	"strings"
	"testing"
	"time"

	"adit/cli/localtime"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

// TestMessagesOfAWebSocketArePrinted prints what a stranger sent, too: nothing of it
// may steer the terminal.
func TestMessagesOfAWebSocketArePrinted(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 21, 0, 0, time.UTC)
	var out strings.Builder
	writeMessages(&out, client.RequestDetail{MessagesMissed: 3, Messages: []client.SocketMessage{
		{From: "visitor", Time: at, Type: "text", Size: 9, Text: "hi \x1b[2Jyou"},
		{From: "origin", Time: at, Type: "text", Size: 70_000, Text: "much", Truncated: true},
		{From: "origin", Time: at, Type: "binary", Size: 3, Base64: "AAEC"},
		{From: "origin", Time: at, Type: "text", Size: 40, Unread: true, Truncated: true},
		{From: "visitor", Time: at, Type: "close", Size: 5, Text: "1000 bye"},
		{From: "origin", Time: at, Type: "close"},
	}})
	c := localtime.Clock(at)
	want := "\n(3 messages before are not kept)\n" +
		c + " -> hi " + visible.Text("\x1b") + "[2Jyou\n" +
		c + " <- much (cut; " + bytesize.Text(70_000) + " in all)\n" +
		c + " <- (3 B that are no text)\n" +
		c + " <- (40 B, compressed in a way that cannot be undone)\n" +
		c + " -> (close) 1000 bye\n" +
		c + " <- (close)\n"
	if got := out.String(); got != want || strings.Contains(got, "\x1b") {
		t.Errorf("got %q\nwant %q", got, want)
	}
	out.Reset()
	if writeMessages(&out, client.RequestDetail{}); out.Len() > 0 {
		t.Errorf("of no WebSocket it says %q", out.String())
	}
}
