package localapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// TestArchiveThatIsNotReadToItsEndIsNobodysFault: `adit requests export | head -1` is
// none, and an archive that breaks here is.
func TestArchiveThatIsNotReadToItsEndIsNobodysFault(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		fault error
	}{
		"a reader who goes":      {64 << 20, nil},
		"an archive that breaks": {1 << 20, errors.New("it broke")},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := serve(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			r.agent.har, r.agent.harErr = strings.Repeat("x", c.size), c.fault
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			io.WriteString(conn, "GET /api/v1/requests.har HTTP/1.1\r\nHost: "+r.addr+"\r\n\r\n")
			answer := bufio.NewReader(conn)
			if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
				t.Fatalf("got %q, %v", line, err)
			}
			if c.fault != nil {
				io.Copy(io.Discard, answer) // to where it breaks
			}
			conn.Close()
			r.stop()
			if told := strings.Contains(log.String(), "archive"); told != (c.fault != nil) {
				t.Errorf("the log says %q, want it told: %t", &log, c.fault != nil)
			}
		})
	}
}
