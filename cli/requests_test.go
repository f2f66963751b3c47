package cli

import (
	"strings"
	"testing"

	"adit/cli/command"
)

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

// TestAFlowHasNoCommand: who gives what is printed to a shell is not to take nothing for
// a command that did its work.
func TestAFlowHasNoCommand(t *testing.T) {
	newFakeDaemon(t)
	code, out, errs := run(t, "", "requests", "show", "r_2", "--curl")
	if want := "r_2 cannot be repeated with curl"; code != command.ExitFailed || out != "" || !strings.Contains(errs, want) {
		t.Errorf("got %d, %q and %q, want %q", code, out, errs, want)
	}
}
