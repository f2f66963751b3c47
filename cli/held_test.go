package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/cli/command"
)

// holds counts the holds that a fake daemon has, by tunnel.
type holds struct {
	mu   sync.Mutex
	open map[string]int
}

// serveHolds makes d take holds. A delete waits for nothing; it notes whether
// the tunnel was held when it came.
func (d *fakeDaemon) serveHolds() *holds {
	h := &holds{open: make(map[string]int)}
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, isHold := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/tunnels/"), "/hold")
		if !isHold {
			plain.ServeHTTP(w, r)
			return
		}
		h.change(id, 1)
		defer h.change(id, -1)
		fmt.Fprint(w, ": held\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	return h
}

func (h *holds) change(id string, by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[id] += by
}

func (h *holds) waitFor(t *testing.T, id string, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		got := h.open[id]
		h.mu.Unlock()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("tunnel %s: got %d holds, want %d", id, got, want)
		}
	}
}

func TestShortFormHoldsItsTunnel(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	held := d.serveHolds()
	_, _, end := startLive(t, false, "http", "3000")
	held.waitFor(t, "t_1", 1)
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d, want 0", code)
	}
	held.waitFor(t, "t_1", 0)
}

// TestShortFormThatEndsWhileItAsksRemovesWhatItGets: Ctrl-C may come while its tunnel is
// being made, which would be public for a while, and in the way of the next one.
func TestShortFormThatEndsWhileItAsksRemovesWhatItGets(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	asked, answer := make(chan struct{}), make(chan struct{})
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Path == "POST /api/v1/tunnels" {
			close(asked)
			<-answer
		}
		plain.ServeHTTP(w, r)
	})
	ctx, interrupt := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, &Env{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: os.Getenv}, []string{"http", "3000"})
	}()
	<-asked
	interrupt()
	close(answer)
	if got := <-code; got != command.ExitDone {
		t.Errorf("got exit code %d, want 0", got)
	}
	if asked := d.changes(); asked[len(asked)-1] != "DELETE /api/v1/tunnels/t_1" {
		t.Errorf("at the end got %q, want the tunnel removed", asked)
	}
}

// made is the tunnel t_3, which the fake daemon makes in place of t_1.
var made = strings.NewReplacer(`"t_1"`, `"t_3"`, "shop.relay", "again.relay").Replace(tunnelJSON)

// askedFor are the tunnels that d was asked for, without repetitions.
func (d *fakeDaemon) askedFor() []string {
	var all []string
	for _, a := range d.requests() {
		if body, ok := strings.CutPrefix(a, "POST /api/v1/tunnels {"); ok {
			all = append(all, "{"+body)
		}
	}
	return slices.Compact(all)
}

// changes are the requests without those that hold a tunnel, which go on beside
// the others and may come late.
func (d *fakeDaemon) changes() []string {
	return slices.DeleteFunc(d.requests(), func(a string) bool { return strings.HasSuffix(a, "/hold") })
}

func (d *fakeDaemon) waitFor(t *testing.T, request string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !slices.Contains(d.requests(), request); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come; got %q", request, d.requests())
		}
	}
}

// startsAgain makes d's event stream say that it started again once restart is
// closed, and refuse tunnels of the domain taken.
func (d *fakeDaemon) startsAgain(restart <-chan struct{}, taken string) {
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v1/events":
			fmt.Fprintf(w, "id: 1\nevent: status\ndata: %s\n\n", statusJSON)
			w.(http.Flusher).Flush()
			select {
			case <-restart:
			case <-r.Context().Done():
				return
			}
			fmt.Fprint(w, "id: 100\nevent: missed\ndata: {\"missed\":3,\"restarted\":true}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "POST /api/v1/tunnels":
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if taken != "" && strings.Contains(string(body), `"domain":"`+taken+`"`) {
				d.note("POST /api/v1/tunnels " + string(body))
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error":{"code":"relay_rejected","message":"it is taken","field":"domain"}}`)
				return
			}
			plain.ServeHTTP(w, r)
		default:
			plain.ServeHTTP(w, r)
		}
	})
}

func TestShortFormMakesTheForgottenTunnelAnew(t *testing.T) {
	web, private := []string{"https", "3000"}, []string{"tcp", "22", "--mode", "private"}
	plain := `{"type":"https","local_port":3000,"ephemeral":true,"held":true}`
	asBefore := `{"type":"https","local_port":3000,"domain":"shop","ephemeral":true,"held":true}`
	for _, test := range []struct {
		name  string
		args  []string
		taken string
		want  []string
	}{
		{"at its address", web, "", []string{plain, asBefore}},
		{"at another if that is taken", web, "shop", []string{plain, asBefore, plain}},
		{"under its private name", private, "", []string{
			`{"type":"tcp","mode":"private","local_port":22,"ephemeral":true,"held":true}`,
			`{"type":"tcp","mode":"private","local_port":22,"domain":"shop","ephemeral":true,"held":true}`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newFakeDaemon(t)
			restart := make(chan struct{})
			d.startsAgain(restart, test.taken)
			held := d.serveHolds()
			d.set("DELETE /api/v1/tunnels/t_3", "")
			out, errs, end := startLive(t, false, test.args...)
			held.waitFor(t, "t_1", 1)
			d.waitFor(t, "GET /api/v1/tunnels/t_1")
			d.set("GET /api/v1/tunnels/t_1", `{"error":{"code":"not_found","message":"there is no tunnel"}}`)
			d.set("POST /api/v1/tunnels", `{"data":`+made+`}`)
			close(restart)
			held.waitFor(t, "t_3", 1)
			held.waitFor(t, "t_1", 0)
			out.waitFor(t, "https://again.relay.example")
			if code := end(); code != command.ExitDone {
				t.Errorf("got exit code %d and %s, want 0", code, errs)
			}
			if got := d.askedFor(); !slices.Equal(got, test.want) {
				t.Errorf("got %q asked for, want %q", got, test.want)
			}
			asked := d.changes()
			if want := "DELETE /api/v1/tunnels/t_3"; asked[len(asked)-1] != want {
				t.Errorf("at the end got %s, want %s", asked[len(asked)-1], want)
			}
		})
	}
}

func TestShortFormServesADaemonThatKnowsNoHolding(t *testing.T) {
	d := newFakeDaemon(t)
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain.ServeHTTP(w, r)
		if r.Method == "POST" {
			d.set("POST /api/v1/tunnels", `{"data":`+tunnelJSON+`}`)
		}
	})
	d.set("POST /api/v1/tunnels", `{"error":{"code":"invalid_parameter","message":"held is not known here","field":"held"}}`)
	d.set("DELETE /api/v1/tunnels/t_1", `{"error":{"code":"not_found","message":"there is no tunnel"}}`)
	d.streamEvents(`tunnel {"action":"deleted","tunnel":` + tunnelJSON + `}`)
	code, _, errs := run(t, "", "http", "3000")
	if code != command.ExitFailed || !strings.Contains(errs, "deleted by someone else") {
		t.Errorf("got exit code %d and %q", code, errs)
	}
	if asked := d.requests(); slices.ContainsFunc(asked, func(a string) bool { return strings.Contains(a, "/hold") }) {
		t.Errorf("got %q, want no hold", asked)
	}
}

// TestShortFormFollowsADaemonThatComesBackElsewhere, as one whose http_listen is another
// by then, or leaves the port to the system.
func TestShortFormFollowsADaemonThatComesBackElsewhere(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	held := d.serveHolds()
	dir := os.Getenv("ADIT_STATE_DIR")
	out, errs, end := startLive(t, false, "https", "3000")
	held.waitFor(t, "t_1", 1)
	d.waitFor(t, "GET /api/v1/tunnels/t_1")
	next := newFakeDaemon(t) // at another port
	next.streamEvents("status " + statusJSON)
	heldThere := next.serveHolds()
	next.set("GET /api/v1/tunnels/t_1", `{"error":{"code":"not_found","message":"there is no tunnel"}}`)
	next.set("POST /api/v1/tunnels", `{"data":`+made+`}`)
	next.set("DELETE /api/v1/tunnels/t_3", "")
	info, err := os.ReadFile(filepath.Join(os.Getenv("ADIT_STATE_DIR"), "runtime.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ADIT_STATE_DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, "runtime.json"), info, 0o600); err != nil {
		t.Fatal(err)
	}
	d.CloseClientConnections()
	d.Close()
	out.waitFor(t, "https://again.relay.example")
	heldThere.waitFor(t, "t_3", 1)
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d and %s, want 0", code, errs)
	}
	asked := next.changes()
	if want := "DELETE /api/v1/tunnels/t_3"; asked[len(asked)-1] != want {
		t.Errorf("at the end got %s, want %s", asked[len(asked)-1], want)
	}
}
