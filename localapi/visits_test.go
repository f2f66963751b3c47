package localapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/agent/refusal"
)

// visit asks for a connection to nas/ssh, with more behind the request's head.
func (r *running) visit(t *testing.T, header, more string) (*net.TCPConn, *bufio.Reader, *http.Response) {
	t.Helper()
	host := strings.TrimPrefix(r.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "POST /api/v1/visits/nas/ssh HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: adit-visit\r\n%s\r\n%s", host, header, more)
	answers := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		return conn.(*net.TCPConn), answers, nil
	}
	return conn.(*net.TCPConn), answers, resp
}

func TestAVisitTakesItsRequestsConnection(t *testing.T) {
	r := serve(t, nil)
	r.agent.visiting = make(chan string, 1)
	conn, answers, resp := r.visit(t, "", "")
	if resp == nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "adit-visit" {
		t.Fatalf("got %+v", resp)
	}
	if line, err := answers.ReadString('\n'); line != "hello nas/ssh\n" {
		t.Fatalf("the tunnel says %q, %v", line, err)
	}
	io.WriteString(conn, "what is said")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if back, err := io.ReadAll(answers); string(back) != "what is said" || err != nil {
		t.Errorf("after the visitor's end came %q, %v", back, err)
	}
	if <-r.agent.visiting != "nas/ssh" {
		t.Error("another was visited")
	}
	r.agent.visiting = nil
	if open := r.conns.open(); open != 0 {
		t.Errorf("%d connections are counted", open)
	}
}

// TestAVisitThatBreaksDoesNotLookEnded: who copies a file by it must not take a part for
// all of it.
func TestAVisitThatBreaksDoesNotLookEnded(t *testing.T) {
	r := serve(t, nil)
	near, far := net.Pipe()
	r.agent.breaks = near
	_, answers, resp := r.visit(t, "", "")
	if resp == nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %+v", resp)
	}
	io.WriteString(far, "a part\n")
	if line, err := answers.ReadString('\n'); line != "a part\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	far.Close()
	if rest, err := io.ReadAll(answers); len(rest) > 0 || err == nil {
		t.Errorf("after it broke came %q and an orderly end, want an error", rest)
	}
}

func TestAVisitEndsWithTheDaemon(t *testing.T) {
	r := serve(t, nil)
	_, answers, _ := r.visit(t, "", "")
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if rest, err := io.ReadAll(answers); len(rest) > 0 {
		t.Errorf("after the end came %q, %v", rest, err)
	}
}

func TestNothingGoesBeforeAVisit(t *testing.T) {
	r := serve(t, nil)
	if _, _, resp := r.visit(t, "", "too early"); resp != nil && resp.StatusCode == http.StatusSwitchingProtocols {
		t.Error("bytes that came before the answer are taken for the tunnel's")
	}
}

// TestAPageCannotVisit: what a browser lets a page send is refused before the agent is asked.
func TestAPageCannotVisit(t *testing.T) {
	r := serve(t, nil)
	r.agent.setRefusal(&refusal.Error{Code: refusal.CodeRelayRejected, Message: "the agent was asked"})
	for _, header := range []string{"Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"} {
		_, _, resp := r.visit(t, header, "")
		if resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%q: got %+v, want 403", header, resp)
		}
	}
}

func TestVisitsAreBounded(t *testing.T) {
	r := serve(t, nil)
	r.streams.visits.open.Store(maxStreams)
	_, _, resp := r.visit(t, "", "")
	if resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want 503", resp)
	}
	if r.streams.visits.open.Load() != maxStreams {
		t.Error("a visit that was refused is counted")
	}
}

// TestStreamsOfOneKindKeepNoOtherOut: a database behind a visit may have as many
// connections as there are places.
func TestStreamsOfOneKindKeepNoOtherOut(t *testing.T) {
	r, _ := serveHolds(t)
	status := map[string]func() int{
		"events": func() int {
			resp, err := plainClient.Get(r.url + "/api/v1/events")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		},
		"hold": func() int {
			resp, err := plainClient.Post(r.url+"/api/v1/tunnels/t_1/hold", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		},
		"visit": func() int {
			_, _, resp := r.visit(t, "", "")
			return resp.StatusCode
		},
	}
	for full, places := range map[string]*share{"events": &r.streams.events, "hold": &r.streams.holds, "visit": &r.streams.visits} {
		places.open.Add(maxStreams)
		for kind, ask := range status {
			if got := ask(); (got == http.StatusServiceUnavailable) != (kind == full) {
				t.Errorf("all places for %s are taken: got %d for %s", full, got, kind)
			}
		}
		places.open.Add(-maxStreams)
	}
}
