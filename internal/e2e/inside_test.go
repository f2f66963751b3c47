package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"adit/internal/freeport"
)

// Whoever has a token needs no daemon for a short form: it runs one, and the next
// one goes on with it.
func TestShortFormsNeedNoDaemon(t *testing.T) {
	t.Parallel() // most of it is waiting
	relay := newRelay(t)
	listen := freeport.Loopback(t)
	here := prepareAgent(t, listen, fmt.Sprintf("http_listen = %q\n", listen))
	port := fmt.Sprint(newOrigin(t))

	none := run(t, here.env, "http", port)
	if none.code != 1 || !strings.Contains(none.stderr, "adit login TOKEN") {
		t.Errorf("without a token: exit code %d, %s", none.code, none.stderr)
	}
	if wrong := run(t, here.env, "login", "adit_wrong"); wrong.code != 1 {
		t.Errorf("with a malformed token: exit code %d, %s%s", wrong.code, wrong.stdout, wrong.stderr)
	}
	if in := run(t, here.env, "login", relay.client("laptop")); in.code != 0 {
		t.Fatalf("login: exit code %d, %s", in.code, in.stderr)
	}
	if left := run(t, here.env, "status"); left.code != 1 || !strings.Contains(left.stderr, "not running") {
		t.Errorf("after login a daemon is left: %s%s", left.stdout, left.stderr)
	}

	first := launch(t, here.env, "http", port, "--domain", "first")
	await(t, "the first runs a daemon", func() error { return getOK("http://" + listen + "/healthz") })
	second := launch(t, here.env, "http", port, "--domain", "second")
	visitor := relay.visitor()
	open := func(p *process) string {
		await(t, p.name+" says its address", func() error {
			if p.ended() {
				t.Fatalf("%s ended: %s", p.name, p.stderr.String())
			}
			if !strings.Contains(p.stdout.String(), " -> ") {
				return fmt.Errorf("it says %q", p.stdout.String())
			}
			return nil
		})
		url, _, _ := strings.Cut(p.stdout.String(), " -> ")
		await(t, url+" answers", answers(visitor, url))
		return url
	}
	gone, stays := open(first), open(second)
	if code := first.stop(); code != 0 || first.stderr.String() != "" {
		t.Errorf("the first ended with exit code %d, %s", code, first.stderr.String())
	}
	took := await(t, "the second goes on", func() error {
		// Its tunnel is made anew once it says the address again.
		if _, taken, _ := strings.Cut(second.stdout.String(), "this command runs the daemon now"); !strings.Contains(taken, stays+" -> ") {
			return fmt.Errorf("it says %q", second.stdout.String())
		}
		return answers(visitor, stays)()
	})
	t.Logf("%s answers again after %v", stays, took)
	if code, _, err := fetch(visitor, gone); err != nil || code != http.StatusNotFound {
		t.Errorf("%s: got %d, %v", gone, code, err)
	}
	if code := second.stop(); code != 0 || second.stderr.String() != "" {
		t.Errorf("the second ended with exit code %d, %s", code, second.stderr.String())
	}
	if err := getOK("http://" + listen + "/healthz"); err == nil {
		t.Error("a daemon is left behind")
	}
	if code, _, err := fetch(visitor, stays); err != nil || code != http.StatusNotFound {
		t.Errorf("%s: got %d, %v", stays, code, err)
	}
}
