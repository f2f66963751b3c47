package cli

import (
	"strings"
	"testing"

	"adit/cli/command"
)

func TestStatusOfASlowLineReadsWell(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/status", `{"data":`+strings.Replace(statusJSON, `"rtt_ms":23.42`, `"rtt_ms":1234.5`, 1)+`}`)
	if _, out, _ := run(t, "", "status"); !strings.Contains(out, "connected over DTLS, 1.2 s, since") {
		t.Errorf("got %q, want a round trip of 1.2 s", out)
	}
}

func TestHelpShowsADurationAsItIsTyped(t *testing.T) {
	if _, out, _ := run(t, "", "relay", "client", "rotate", "--help"); !strings.Contains(out, "(default 24h)") {
		t.Errorf("got %q, want (default 24h) in it", out)
	}
}

func TestOverlapBeyondItsBoundsIsWrongUsage(t *testing.T) {
	for _, overlap := range []string{"-1s", "2161h"} {
		code, _, errs := run(t, "", "relay", "client", "rotate", "shop", "--overlap", overlap)
		if code != command.ExitUsage || !strings.Contains(errs, "--overlap must be 0 to 2160h (90 days)") {
			t.Errorf("%s: got exit code %d and %q, want 2 and the bounds", overlap, code, errs)
		}
	}
}
