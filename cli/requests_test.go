package cli

import (
	"strings"
	"testing"
	"time"

	"adit/cli/command"
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

// TestFlowOfUDPHasNoVisitor: datagrams do not tell the daemon whose they are, and
// nothing stands where an address would.
func TestFlowOfUDPHasNoVisitor(t *testing.T) {
	const udp = `{"id":"r_3","kind":"flow","tunnel_id":"t_1","tunnel_name":"game","type":"udp","time":"2026-05-04T10:21:00Z","visitor":"","state":"done","duration_ms":3,"bytes_in":6,"bytes_out":21}`
	d := newFakeDaemon(t)
	d.set("GET /api/v1/requests", `{"data":{"items":[`+udp+`]}}`)
	d.set("GET /api/v1/requests/r_3", `{"data":`+udp+`}`)
	for args, want := range map[string]string{
		"requests list":     "game    done    6 B in, 21 B out  3.0\n",
		"requests show r_3": ", game\ndone, 6 B in, 21 B out, 3.0 ms\n",
	} {
		if code, out, _ := run(t, "", strings.Fields(args)...); code != command.ExitDone || !strings.Contains(out, want) {
			t.Errorf("adit %s: got %d and %q, want %q", args, code, out, want)
		}
	}
}
