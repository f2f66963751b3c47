package relay

import (
	"context"
	"encoding/xml"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
	"adit/tunnel/wire"
)

// h2specCases is how many cases version 2.2.1 has, the strict ones among them.
const h2specCases = 146

// h2specExceptions are the cases that fail, with the reason.
var h2specExceptions = map[string]string{
	"http2/6.5.3: Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE": "net/http ends connections whose SETTINGS frame has an entry twice, as a defence; no client sends that",
	// RFC 9113, section 8.1.1, lets a server answer a malformed request before it
	// ends the stream; h2spec wants the stream ended without. net/http answers 400,
	// which TestHTTP2Frames has, too.
	"http2/8.1.2.2: Sends a HEADERS frame that contains the connection-specific header field":                     "answered with 400",
	`http2/8.1.2.2: Sends a HEADERS frame that contains the TE header field with any value other than "trailers"`: "answered with 400",
}

type h2specReport struct {
	Suites []struct {
		Package string `xml:"package,attr"`
		Cases   []struct {
			Name    string  `xml:"classname,attr"`
			Failure string  `xml:"failure"`
			Error   string  `xml:"error"`
			Skipped *string `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// All of h2spec, at an endpoint that has an origin.
func TestH2Spec(t *testing.T) {
	require.Opted(t)
	require.Tool(t, "go")
	dir := t.TempDir()
	program, report := filepath.Join(dir, "h2spec"), filepath.Join(dir, "report.xml")
	build := exec.Command("go", "build", "-trimpath", "-modfile="+filepath.Join("..", "..", "tools.mod"), "-o", program, "./testdata/h2spec")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		require.Missing(t, "h2spec cannot be built: %v: %s", err, out)
	}
	zone := startZone(t, "relay.test.")
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "h2spec"), "i1")
	// Long enough for the cases that let a window run dry.
	a.mustClaim("h2", wire.Claim{Type: wire.TypeHTTPS, Domain: "h2"}, startOrigin(t, text(strings.Repeat("body ", 1000))))
	_, port, err := net.SplitHostPort(r.Addrs().HTTPS)
	if err != nil {
		t.Fatal(err)
	}
	// The cases wait for an answer as long as -timeout, and an end of the
	// connection is an answer: it only shows a missing one.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-host", "h2.relay.test", "-port", port, "-tls", "-timeout", "5s", "-dns", zone.addr, "-report", report).CombinedOutput()
	if err != nil {
		t.Fatalf("h2spec: %v\n%s", err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var got h2specReport
	if err := xml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	cases, skipped := 0, 0
	failed := make(map[string]bool)
	for _, s := range got.Suites {
		for _, c := range s.Cases {
			cases++
			name := s.Package + ": " + c.Name
			if c.Skipped != nil {
				skipped++
				t.Logf("skipped by h2spec: %s", name)
			}
			if fault := c.Failure + c.Error; fault != "" {
				failed[name] = true
				if h2specExceptions[name] == "" {
					t.Errorf("%s: %s", name, strings.Join(strings.Fields(fault), " "))
				}
			}
		}
	}
	for name, why := range h2specExceptions {
		if !failed[name] {
			t.Errorf("%s passes and need not be excepted (%s)", name, why)
		}
	}
	if cases != h2specCases || skipped > 0 {
		t.Errorf("%d cases, %d of them skipped; want %d and none", cases, skipped, h2specCases)
	}
}
