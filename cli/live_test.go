package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/cli/command"
)

// lockedBuffer is a stream that a test may read while a command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) waitFor(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if strings.Contains(l.String(), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q did not come; got\n%s", text, l)
		}
	}
}

// streamEvents makes the fake daemon's event stream give events, and then wait.
func (d *fakeDaemon) streamEvents(events ...string) {
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/events" {
			plain.ServeHTTP(w, r)
			return
		}
		for i, e := range events {
			kind, data, _ := strings.Cut(e, " ")
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", i+1, kind, data)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
}

var clocks = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`)

// startLive runs a short form; end is Ctrl-C.
func startLive(t *testing.T, terminal bool, args ...string) (out, errs *lockedBuffer, end func() int) {
	t.Helper()
	return startLiveIn(t, func(env *Env) { env.Terminal = terminal }, args...)
}

// startLiveIn is startLive in a world that change makes.
func startLiveIn(t *testing.T, change func(*Env), args ...string) (out, errs *lockedBuffer, end func() int) {
	t.Helper()
	out, errs = new(lockedBuffer), new(lockedBuffer)
	env := &Env{In: strings.NewReader(""), Out: out, Err: errs, Getenv: os.Getenv}
	change(env)
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() { code <- Run(ctx, env, args) }()
	end = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { end() })
	return out, errs, end
}

func liveEvents() []string {
	return []string{
		"status " + statusJSON,
		`endpoint {"action":"changed","endpoint":{"id":"e_7","tunnel_id":"t_1","name":"shop","public_url":"https://shop.relay.example","connections":{"open":1,"total":12},"bytes":{"in":1200,"out":88000}}}`,
		`request {"id":"r_9","kind":"http","tunnel_id":"t_9","time":"2026-05-04T10:21:00Z","state":"done","method":"GET","path":"/other","status":200,"duration_ms":1}`,
		`request {"id":"r_1","kind":"http","tunnel_id":"t_1","time":"2026-05-04T10:21:00Z","state":"open","method":"GET","path":"/slow"}`,
		`request {"id":"r_1","kind":"http","tunnel_id":"t_1","time":"2026-05-04T10:21:00Z","state":"done","method":"GET","path":"/slow","status":200,"duration_ms":12.5}`,
		`request {"id":"r_1","kind":"http","tunnel_id":"t_1","time":"2026-05-04T10:21:00Z","state":"done","method":"GET","path":"/slow","status":200,"duration_ms":12.5}`,
		`log {"time":"2026-05-04T10:21:00Z","level":"warn","message":"visitor not served","fields":{"tunnel":"t_9","reason":"of another"}}`,
		`log {"time":"2026-05-04T10:21:00Z","level":"warn","message":"visitor not served","fields":{"tunnel":"t_1","reason":"nothing listens at the local address 127.0.0.1:3000"}}`,
		`tunnel {"action":"changed","tunnel":` + strings.Replace(tunnelJSON, "https://shop.", "https://moved.", 1) + `}`,
		`request {"id":"r_3","kind":"flow","tunnel_id":"t_1","time":"2026-05-04T10:21:00Z","visitor":"203.0.113.9:50123","state":"failed","duration_ms":3,"bytes_in":4100,"bytes_out":5242880}`,
		"status " + pausedJSON,
	}
}

func TestShortFormLogsAndRemovesItsTunnel(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents(liveEvents()...)
	out, errs, end := startLive(t, false, "http", "3000", "--domain", "shop")
	out.waitFor(t, "session paused")
	if code := end(); code != command.ExitDone || errs.String() != "" {
		t.Errorf("got exit code %d and %q, want 0 and nothing", code, errs)
	}
	golden(t, "live", clocks.ReplaceAllString(out.String(), "hh:mm:ss"))
	asked := d.changes()
	if want := `POST /api/v1/tunnels {"type":"http","local_port":3000,"domain":"shop","ephemeral":true,"held":true}`; asked[0] != want {
		t.Errorf("got %s, want %s", asked[0], want)
	}
	if want := "DELETE /api/v1/tunnels/t_1"; asked[len(asked)-1] != want {
		t.Errorf("at the end got %s, want %s", asked[len(asked)-1], want)
	}
}

func TestShortFormDrawsOnATerminal(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents(liveEvents()...)
	out, _, end := startLive(t, true, "https", "3000")
	out.waitFor(t, "paused by a person")
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d, want 0", code)
	}
	screens := strings.Split(strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(out.String()), "\x1b[H")
	last := strings.ReplaceAll(screens[len(screens)-1], d.URL, "http://daemon")
	golden(t, "live-terminal", last)
}

// TestShortFormTellsThatTheServiceIsBack, and shows no trouble that is over.
func TestShortFormTellsThatTheServiceIsBack(t *testing.T) {
	const of = `endpoint {"action":"changed","endpoint":{"id":"e_7","tunnel_id":"t_1","public_url":"https://shop.relay.example","error":%q}}`
	for _, terminal := range []bool{false, true} {
		d := newFakeDaemon(t)
		d.streamEvents(
			`log {"time":"2026-05-04T10:21:00Z","level":"warn","message":"visitor not served","fields":{"tunnel":"t_1","reason":"nothing listens there"}}`,
			fmt.Sprintf(of, "nothing listens there"), fmt.Sprintf(of, ""), fmt.Sprintf(of, ""), "status "+pausedJSON)
		out, _, end := startLive(t, terminal, "http", "3000")
		out.waitFor(t, "paused")
		end()
		screens := strings.Split(out.String(), "\x1b[H")
		last := screens[len(screens)-1]
		if told := strings.Count(last, "reached again"); !terminal && told != 1 {
			t.Errorf("it is told %d times that the service is back:\n%s", told, last)
		}
		if terminal && strings.Contains(last, "nothing listens") {
			t.Errorf("the trouble is shown on:\n%s", last)
		}
	}
}

func TestShortFormPrintsJSONOnce(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents(liveEvents()...)
	out, _, end := startLive(t, false, "tcp", "22", "--json")
	out.waitFor(t, "\n}\n")
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d, want 0", code)
	}
	if !strings.HasPrefix(out.String(), "{") || strings.Count(out.String(), "\n}\n") != 1 {
		t.Errorf("got %s, want one document", out)
	}
}

func TestShortFormEndsWhenItsTunnelIsDeleted(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("DELETE /api/v1/tunnels/t_1", `{"error":{"code":"not_found","message":"there is no tunnel"}}`)
	d.streamEvents(`tunnel {"action":"deleted","tunnel":` + tunnelJSON + `}`)
	code, _, errs := run(t, "", "http", "3000")
	if code != command.ExitFailed || !strings.Contains(errs, "deleted by someone else") {
		t.Errorf("got exit code %d and %q", code, errs)
	}
}

func TestShortFormOutlivesTheDaemonsRestart(t *testing.T) {
	d := newFakeDaemon(t)
	d.Config.Handler = dropFirst(d.Config.Handler)
	out, _, end := startLive(t, false, "http", "3000")
	out.waitFor(t, "the daemon is back")
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d, want 0", code)
	}
	if !strings.Contains(out.String(), "is not heard") {
		t.Errorf("got\n%s\nwant the loss told", out)
	}
}

// dropFirst breaks the first event stream off and serves the second.
func dropFirst(plain http.Handler) http.Handler {
	var once sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/events" {
			plain.ServeHTTP(w, r)
			return
		}
		first := false
		once.Do(func() { first = true })
		if first { // after the headers, so that the client does not just ask again
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "id: 1\nevent: status\ndata: %s\n\n", statusJSON)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
}

func TestLogsAreFollowed(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents(
		`log {"time":"2026-05-04T10:20:31Z","level":"info","message":"not shown"}`,
		`log {"time":"2026-05-04T10:20:32Z","level":"error","message":"shown"}`,
	)
	out, _, end := startLive(t, false, "logs", "--follow", "--level", "warn")
	out.waitFor(t, "ERROR shown")
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d, want 0", code)
	}
	if strings.Contains(out.String(), "not shown") {
		t.Errorf("got\n%s\nwant warnings and errors alone", out)
	}
}

// A line that comes while the log is asked for is told by an event alone, if the
// events have begun before.
func TestNoLineIsLostBetweenTheLogAndItsEvents(t *testing.T) {
	const early = `{"time":"2026-05-04T10:20:31Z","level":"warn","message":"early"}`
	d := newFakeDaemon(t)
	plain := d.Config.Handler
	asked := make(chan struct{})
	var once sync.Once
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/logs":
			defer once.Do(func() { close(asked) })
			fmt.Fprintf(w, `{"data":{"items":[%s]}}`, early)
		case "/api/v1/events":
			select { // what was logged before the stream began is not in it
			case <-asked:
				return
			default:
			}
			fmt.Fprintf(w, "id: 1\nevent: status\ndata: %s\n\n", statusJSON)
			w.(http.Flusher).Flush()
			<-asked
			fmt.Fprintf(w, "id: 2\nevent: log\ndata: %s\n\nid: 3\nevent: log\ndata: %s\n\n", early, strings.Replace(early, "early", "between", 1))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			plain.ServeHTTP(w, r)
		}
	})
	out, _, end := startLive(t, false, "logs", "--follow")
	out.waitFor(t, "WARN  between")
	if code := end(); code != command.ExitDone {
		t.Errorf("got exit code %d, want 0", code)
	}
	if n := strings.Count(out.String(), "early"); n != 1 {
		t.Errorf("a line is shown %d times, want once:\n%s", n, out)
	}
}

func TestTheClientIsFoundInTheStateFolderAlone(t *testing.T) {
	d := newFakeDaemon(t)
	if err := os.Remove(filepath.Join(os.Getenv("ADIT_STATE_DIR"), "runtime.json")); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := run(t, "", "status"); code != command.ExitFailed || len(d.requests()) != 0 {
		t.Errorf("got exit code %d and requests %v, want a failure and none", code, d.requests())
	}
}

// TestATokenThatIsOfNoUseIsNotSaidToBeMissing: whoever mistyped ADIT_AUTH_TOKEN has
// given one.
func TestATokenThatIsOfNoUseIsNotSaidToBeMissing(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("POST /api/v1/tunnels", `{"error":{"code":"not_configured","message":"there is no auth token yet; configure one first"}}`)
	for reason, want := range map[string]string{
		"": "adit: there is no auth token yet; run `adit login TOKEN` with one from your relay's operator\n",
		"the configured token cannot be used: a part is missing": "adit: the configured token cannot be used: a part is missing; run `adit login TOKEN`\n",
	} {
		d.set("GET /api/v1/status", fmt.Sprintf(`{"data":{"state":"unconfigured","last_error":%q}}`, reason))
		for _, args := range [][]string{{"http", "3000"}, {"tunnel", "create", "3000"}} {
			if code, _, errs := run(t, "", args...); code != command.ExitFailed || errs != want {
				t.Errorf("adit %s: got %d and %q, want %q", strings.Join(args, " "), code, errs, want)
			}
		}
	}
}

// A token that was revoked never comes back: waiting for visitors is in vain then, and
// a script must learn of it. One that is refused for now may be taken again.
// Who logs out wants nothing of this machine to be public, nor to become so with the
// next token.
func TestShortFormEndsWithTheToken(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status "+statusJSON, "status "+freshJSON)
	_, errs, end := startLive(t, false, "http", "3000")
	errs.waitFor(t, "`adit login TOKEN`")
	if code := end(); code != command.ExitFailed {
		t.Errorf("got exit code %d, want 1", code)
	}
	asked := d.changes()
	if want := "DELETE /api/v1/tunnels/t_1"; asked[len(asked)-1] != want {
		t.Errorf("at the end got %s, want %s", asked[len(asked)-1], want)
	}
}

func TestShortFormEndsWithARevokedToken(t *testing.T) {
	rejected := func(reason string) string {
		return strings.NewReplacer(`"connected":true,"state":"connected"`, `"connected":false,"state":"rejected"`, `"last_error":""`, `"last_error":"`+reason+`"`).Replace(statusJSON)
	}
	const revoked = "the relay revoked the token: its operator has revoked it; ask its operator for a new one"
	for name, terminal := range map[string]bool{"on a terminal": true, "in a script": false} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDaemon(t)
			d.streamEvents("status "+statusJSON, "status "+rejected("the relay refuses the token for now: its time has ended; ask its operator"), "status "+rejected(revoked))
			out, errs, end := startLive(t, terminal, "http", "3000")
			errs.waitFor(t, revoked)
			if code := end(); code != command.ExitFailed {
				t.Errorf("got exit code %d, want 1", code)
			}
			if !strings.Contains(out.String(), "refuses the token for now") {
				t.Errorf("got\n%s\nwant it to have said that it waits", out)
			}
			asked := d.changes()
			if want := "DELETE /api/v1/tunnels/t_1"; asked[len(asked)-1] != want {
				t.Errorf("at the end got %s, want %s", asked[len(asked)-1], want)
			}
		})
	}
}
