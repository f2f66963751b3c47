package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/cli/command"
	"adit/cli/terminal"
)

// A screen that scrolls when it is drawn over leaves what was drawn before above.
func TestShortFormFitsTheScreenThatThereIs(t *testing.T) {
	for _, size := range []struct{ columns, rows int }{{40, 24}, {40, 14}, {60, 8}, {200, 60}, {30, 3}, {1, 2}} {
		t.Run(fmt.Sprintf("%dx%d", size.columns, size.rows), func(t *testing.T) {
			d := newFakeDaemon(t)
			events := liveEvents()
			for i := range 40 {
				events = append(events, fmt.Sprintf(`request {"id":"r_x%d","kind":"http","tunnel_id":"t_1","time":"2026-05-04T10:21:00Z","state":"done","method":"GET","path":"/页面/%s/%d","status":200,"duration_ms":12.5}`, i, strings.Repeat("x", i), i))
			}
			d.streamEvents(append(events, `status `+strings.Replace(pausedJSON, "paused by a person", "the end of the test", 1))...)
			out := new(lockedBuffer)
			env := &Env{
				In: strings.NewReader(""), Out: out, Err: new(lockedBuffer), Getenv: os.Getenv, Terminal: true,
				Screen: func() (int, int) { return size.columns, size.rows },
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan int, 1)
			go func() { done <- Run(ctx, env, []string{"https", "3000"}) }()
			if out.waitFor(t, "\x1b[J"); size.rows > 10 {
				out.waitFor(t, "the end of the test")
			}
			cancel()
			<-done
			drawn, _, _ := strings.Cut(out.String(), "Removed the tunnel.")
			drawn = strings.NewReplacer("\x1b[K", "", "\x1b[J", "", "\x1b[2J", "").Replace(drawn)
			for text := range strings.SplitSeq(drawn, "\x1b[H") {
				lines := strings.Split(text, "\n") // the last is the cursor's
				if len(lines) > max(size.rows, 2) {
					t.Fatalf("got %d lines for %d rows:\n%s", len(lines), size.rows, text)
				}
				for _, line := range lines {
					if size.columns >= 32 && terminal.Pad(line, size.columns+1) == line {
						t.Fatalf("got a line wider than %d columns: %q", size.columns, line)
					}
				}
			}
			if address := "https://shop.relay.example"; size.rows > 10 && !strings.Contains(strings.ReplaceAll(drawn, "\n", ""), address) {
				t.Errorf("the address %s is not to be seen in full in\n%s", address, drawn)
			}
		})
	}
}

func TestWhatIsDoneIsOneDocumentToo(t *testing.T) {
	newFakeDaemon(t)
	file := filepath.Join(t.TempDir(), "traffic.har")
	for _, args := range [][]string{
		{"tunnel", "delete", "shop"}, {"requests", "clear"}, {"requests", "export", file}, {"logout"},
	} {
		code, out, errs := run(t, "", append(args, "--json")...)
		var document map[string]any
		if err := json.Unmarshal([]byte(out), &document); err != nil || code != command.ExitDone || len(document) == 0 {
			t.Errorf("%v: got %d %q %q, want one JSON document", args, code, out, errs)
		}
	}
}

func TestVersionIsOneDocumentHoweverItIsAskedFor(t *testing.T) {
	_, want, _ := run(t, "", "version", "--json")
	for _, args := range [][]string{{"--version", "--json"}, {"--json", "--version"}, {"--json", "-v"}} {
		if code, out, errs := run(t, "", args...); code != command.ExitDone || out != want || errs != "" {
			t.Errorf("adit %s: got exit code %d, %q and %q, want 0 and %q", strings.Join(args, " "), code, out, errs, want)
		}
	}
}

// TestJSONOfNoCommandIsWrongUsage: a program that asks for a document and forgot
// of what is not given a page for people.
func TestJSONOfNoCommandIsWrongUsage(t *testing.T) {
	code, out, errs := run(t, "", "--json")
	if want := "adit: --json needs a command, such as adit status --json; see `adit help`\n"; code != command.ExitUsage || out != "" || errs != want {
		t.Errorf("got exit code %d, %q and %q, want 2 and %q", code, out, errs, want)
	}
	if code, out, _ := run(t, ""); code != command.ExitDone || !strings.Contains(out, "adit dev 8000") {
		t.Errorf("without it: got exit code %d and %q, want 0 and the help", code, out)
	}
}

func TestArchiveThatIsThereOutlivesARefusal(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/requests.har", `{"error":{"code":"internal","message":"not now"}}`)
	file := filepath.Join(t.TempDir(), "traffic.har")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := run(t, "", "requests", "export", file); code != command.ExitFailed {
		t.Errorf("got exit code %d, want %d", code, command.ExitFailed)
	}
	if text, _ := os.ReadFile(file); string(text) != "before" {
		t.Errorf("got %q, want the archive as it was", text)
	}
}

func TestLimitThatNothingCanHaveIsWrongUsage(t *testing.T) {
	newFakeDaemon(t)
	for _, args := range [][]string{{"logs", "--limit", "-3"}, {"logs", "--limit", "0"}, {"requests", "list", "--limit", "-1"}} {
		if code, out, errs := run(t, "", args...); code != command.ExitUsage || out != "" || !strings.Contains(errs, "--limit") {
			t.Errorf("%v: got %d %q %q, want %d and the flag", args, code, out, errs, command.ExitUsage)
		}
	}
}
