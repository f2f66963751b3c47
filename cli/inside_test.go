package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/cli/command"
)

// notYet takes the fake daemon's address away until the returned function runs it
// inside a command. log tells what was run, and what had been asked by its end.
func (d *fakeDaemon) notYet(t *testing.T) (inside func(ctx context.Context, runBy string, ready func()) error, log func() []string) {
	t.Helper()
	path := filepath.Join(os.Getenv("ADIT_STATE_DIR"), "runtime.json")
	info, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var said []string
	return func(ctx context.Context, runBy string, ready func()) error {
		said = append(said, runBy)
		if err := os.WriteFile(path, info, 0o600); err != nil {
			return err
		}
		ready()
		<-ctx.Done()
		asked := d.changes()
		said = append(said, asked[max(0, len(asked)-1):]...)
		return os.Remove(path)
	}, func() []string { return said }
}

func TestShortFormRunsTheDaemonWhereNoneRuns(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents(liveEvents()...)
	run, log := d.notYet(t)
	out, errs, end := startLiveIn(t, func(env *Env) { env.Inside = run }, "http", "3000")
	out.waitFor(t, "session paused")
	if code := end(); code != command.ExitDone || errs.String() != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if !strings.Contains(out.String(), "this command runs one until it ends") {
		t.Errorf("it does not say so:\n%s", out)
	}
	// It ends after the tunnel is given back.
	if got := strings.Join(log(), "; "); got != "adit http; DELETE /api/v1/tunnels/t_1" {
		t.Errorf("got %s", got)
	}
}

func TestLoginRunsTheDaemonWhereNoneRuns(t *testing.T) {
	d := newFakeDaemon(t)
	run, log := d.notYet(t)
	env, out, _ := testEnv("")
	env.Inside = run
	if code := Run(context.Background(), env, []string{"login", "adit_secret"}); code != command.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(out.String(), "No daemon is running yet") {
		t.Errorf("it does not say so:\n%s", out)
	}
	if got := log(); len(got) != 2 || got[0] != "adit login" {
		t.Errorf("got %q", got)
	}
}

// What ends the daemon in it ends a short form, with the daemon's reason.
func TestShortFormEndsWithTheDaemonInIt(t *testing.T) {
	d := newFakeDaemon(t)
	run, _ := d.notYet(t)
	for name, inside := range map[string]func(ctx context.Context, runBy string, ready func()) error{
		"from the start": func(context.Context, string, func()) error { return errors.New("adit.toml is odd") },
		"later": func(ctx context.Context, runBy string, ready func()) error {
			ctx, stop := context.WithCancel(ctx)
			_ = run(ctx, runBy, func() { ready(); stop() })
			return errors.New("adit.toml is odd")
		},
	} {
		env, _, errs := testEnv("")
		env.Inside = inside
		if code := Run(t.Context(), env, []string{"http", "3000"}); code != command.ExitFailed || !strings.Contains(errs.String(), "adit.toml is odd") {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
	}
}

// Two that begin at once: one has the port, the other finds it there.
func TestACommandThatIsLateTakesTheDaemonOfTheOther(t *testing.T) {
	d := newFakeDaemon(t)
	run, _ := d.notYet(t)
	env, _, errs := testEnv("")
	other, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	defer func() { stop(); <-ended }()
	env.Inside = func(context.Context, string, func()) error {
		ready := make(chan struct{})
		go func() { ended <- run(other, "adit https", func() { close(ready) }) }()
		<-ready
		return errors.New("the port is in use")
	}
	if code := Run(t.Context(), env, []string{"login", "adit_secret"}); code != command.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// The relay may need its time, or not be the one that the token names.
func TestShortFormSaysWhatItWaitsFor(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/status", `{"data":`+pausedJSON+`}`)
	d.streamEvents(liveEvents()...)
	said := make(chan struct{})
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/tunnels" {
			select {
			case <-said:
			case <-time.After(20 * time.Second):
			}
		}
		plain.ServeHTTP(w, r)
	})
	out, errs, end := startLive(t, true, "http", "3000")
	errs.waitFor(t, "Waiting for the session, which is paused: paused by a person")
	close(said)
	out.waitFor(t, "Forwarding")
	if code := end(); code != command.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
