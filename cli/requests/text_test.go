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
	want := "\n(3 earlier messages were not kept)\n" +
		c + " -> hi " + visible.Text("\x1b") + "[2Jyou\n" +
		c + " <- much (truncated; " + bytesize.Text(70_000) + " in total)\n" +
		c + " <- (3 B of binary data)\n" +
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

// TestABodyThatIsNotThereIsNotSaidToBeOfAnotherKind: what passes over a WebSocket is its
// messages, and of a large body nothing may have been kept.
func TestABodyThatIsNotThereIsNotSaidToBeOfAnotherKind(t *testing.T) {
	for want, body := range map[string]client.Body{
		"(3 B of binary data)\n":                     {Size: 3, Base64: "AAEC"},
		"(9 B, not kept)\n":                          {Size: 9},
		"(" + bytesize.Text(3<<20) + ", not kept)\n": {Size: 3 << 20, Truncated: true},
		"hel\n(truncated; 5 B in total)\n":           {Size: 5, Text: "hel", Truncated: true},
	} {
		var out strings.Builder
		writeRequest(&out, client.RequestDetail{Response: &client.Message{Line: "HTTP/1.1 200 OK", Body: body}})
		if _, got, _ := strings.Cut(out.String(), "200 OK\n\n"); got != want {
			t.Errorf("%+v: got %q, want %q", body, got, want)
		}
	}
	var out strings.Builder
	socket := client.RequestDetail{Response: &client.Message{Line: "HTTP/1.1 101 Switching Protocols", Body: client.Body{Size: 7}}}
	socket.Status = 101
	if writeRequest(&out, socket); strings.Contains(out.String(), "7 B") {
		t.Errorf("a WebSocket has a body: %q", out.String())
	}
}
