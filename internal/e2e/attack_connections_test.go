package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// TestThousandConnectionsKeepNobodyOut holds a thousand and more connections to
// the built daemon, silent ones and ones that never end what they say, and asks
// beside them as anybody would.
func TestThousandConnectionsKeepNobodyOut(t *testing.T) {
	curl := require.Tool(t, "curl")
	a := newAgent(t)
	begin := []string{
		"",
		"GET /api/v1/status HTTP/1.1\r\nHost: " + a.listen + "\r\nX-Slow: ",
		"POST /api/v1/tunnels HTTP/1.1\r\nHost: " + a.listen + "\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"name\":\"",
		"GET /api/v1/status HTTP/1.1\r\nHost: " + a.listen + "\r\n\r\n", // and stays
	}
	for i := range 1200 {
		conn, err := net.Dial("tcp", a.listen)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { conn.Close() })
		if i < 1000 {
			fmt.Fprint(conn, begin[i%len(begin)])
		} else {
			fmt.Fprint(conn, "GET /api/v1/events HTTP/1.1\r\nHost: "+a.listen+"\r\n\r\n")
		}
	}
	for _, path := range []string{"/healthz", "/api/v1/status", "/api/v1/tunnels", "/"} {
		out, err := exec.Command(curl, "-fsS", "-m", "30", "http://"+a.listen+path).CombinedOutput()
		if err != nil {
			t.Errorf("curl %s: %v %s", path, err, out)
		}
	}
	if out, err := exec.Command(curl, "-sS", "-m", "30", "-H", "Content-Type: application/json", "-d", `{"local_port":1}`, "http://"+a.listen+"/api/v1/tunnels").CombinedOutput(); err != nil || !strings.Contains(string(out), "not_configured") {
		t.Errorf("a change beside them: %v %s", err, out)
	}
	if got := must(t, a.env, "status"); got == "" {
		t.Error("adit status says nothing")
	}
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Get("http://" + a.listen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}
