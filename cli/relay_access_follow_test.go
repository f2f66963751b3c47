package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"adit/cli/command"
)

// followed runs `adit relay access --follow` with flags at a relay that tells of live
// after it has begun, and of stored when it is asked for what there is. It ends when
// the relay does, or once the text until has come.
func followed(t *testing.T, live, stored, until string, flags ...string) (code int, out, errs string, asked []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex // of asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/live") {
			fmt.Fprint(w, `{"data":{"items":[`+stored+`],"complete":true}}`)
			return
		}
		fmt.Fprint(w, ": begun\n\n", live)
		http.NewResponseController(w).Flush()
		if until != "" {
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	env, _, e := testEnv("")
	o := &lockedBuffer{}
	env.Out = o
	env.Getenv = func(name string) string {
		return map[string]string{"ADIT_RELAY_ADMIN_URL": server.URL, "ADIT_RELAY_ADMIN_TOKEN": "x"}[name]
	}
	done := make(chan int, 1)
	go func() { done <- Run(ctx, env, append([]string{"relay", "access", "--follow"}, flags...)) }()
	if until != "" {
		o.waitFor(t, until)
		cancel()
	}
	code = <-done
	mu.Lock()
	defer mu.Unlock()
	return code, o.String(), e.String(), asked
}

func accessEvent(path, more string) string {
	return `{"time":"2026-05-04T10:20:30Z","visitor":"192.0.2.1","method":"GET","host":"shop.example.com","path":"` + path + `","bytes_in":0,"bytes_out":2048,"duration_ns":1500000` + more + `}`
}

func TestAccessIsFollowed(t *testing.T) {
	live := "event: access\ndata: " + accessEvent("/old", `,"status":200`) + "\n\nevent: missed\ndata: {\"count\":7}\n\n: still here\n\nevent: access\ndata: " +
		accessEvent(`/\u001b[2J`, `,"status":403,"refused":"deny","user":"ann"`) + "\n\n"
	stored := accessEvent("/old", `,"status":200,"id":"1-2"`) + "," + accessEvent("/older", `,"status":204,"id":"1-1"`)
	code, out, errs, asked := followed(t, live, stored, "refused by deny", "--refused", "any", "--limit", "2")
	want := "05-04 10:20:30 204 192.0.2.1 GET shop.example.com/older, 0 B in, 2.0 KiB out, 1.5 ms\n" +
		"05-04 10:20:30 200 192.0.2.1 GET shop.example.com/old, 0 B in, 2.0 KiB out, 1.5 ms\n" +
		"05-04 10:20:30 403 192.0.2.1 (ann) GET shop.example.com/"
	if code != 0 || !strings.HasPrefix(out, want) || strings.Contains(out, "\x1b") || strings.Count(out, "\n") != 3 {
		t.Errorf("exit code %d, got\n%s\nwant\n%s…", code, out, want)
	}
	if !strings.Contains(errs, "7 events came too fast") {
		t.Errorf("said %q", errs)
	}
	if got := strings.Join(asked, " "); got != "/api/v1/access/live?refused=any /api/v1/access?limit=2&refused=any" {
		t.Errorf("asked for %s", got)
	}
	code, out, _, _ = followed(t, live, stored, `"deny"`, "--json")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], `{"id":"1-1","time":`) {
		t.Errorf("exit code %d, got %s", code, out)
	}
}

func TestFollowedAccessThatEnds(t *testing.T) {
	code, out, errs, _ := followed(t, "event: access\ndata: "+accessEvent("/last", "")+"\n\n", "", "")
	if code != command.ExitFailed || !strings.Contains(out, "/last") || !strings.Contains(errs, "the relay stopped sending events") {
		t.Errorf("exit code %d, got %q, said %q", code, out, errs)
	}
	for flag, want := range map[string]string{"--export=a.csv": "use only one of them", "--until=1h": "cannot be used with --until"} {
		if code, _, errs, asked := followed(t, "", "", "", flag); code != command.ExitUsage || !strings.Contains(errs, want) || len(asked) > 0 {
			t.Errorf("%s: exit code %d, said %q, asked for %v", flag, code, errs, asked)
		}
	}
}
