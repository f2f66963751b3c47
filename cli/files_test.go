package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/cli/command"
)

// sharedFolder is a folder with a file of that text.
func sharedFolder(t *testing.T, text string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "photos")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// firstWanted is the tunnel that a short form asked a daemon for.
func (d *fakeDaemon) firstWanted(t *testing.T) (in struct {
	Type, Name, Domain string
	LocalPort          int `json:"local_port"`
	Ephemeral          bool
	Inspect            *bool
},
) {
	t.Helper()
	asked, ok := strings.CutPrefix(d.changes()[0], "POST /api/v1/tunnels ")
	if err := json.Unmarshal([]byte(asked), &in); !ok || err != nil {
		t.Fatalf("got %s: %v", d.changes()[0], err)
	}
	return in
}

// getFile asks for a folder's file as a visitor of its tunnel does; password may be empty.
func getFile(t *testing.T, port int, password string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/a.txt", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.relay.example"
	if password != "" {
		r.SetBasicAuth("ann", password)
	}
	return http.DefaultClient.Do(r)
}

func TestFilesServesAFolderUntilItEnds(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	dir := sharedFolder(t, "hello")
	out, errs, end := startLive(t, false, "files", dir, "--domain", "shop", "--inspect=false")
	out.waitFor(t, "session connected")
	in := d.firstWanted(t)
	if in.Type != "https" || in.Name != "photos" || in.Domain != "shop" || !in.Ephemeral || in.Inspect == nil || *in.Inspect {
		t.Errorf("got %+v, want an ephemeral tunnel of the folder's name", in)
	}
	resp, err := getFile(t, in.LocalPort, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello" {
		t.Errorf("got %q and %v, want the file", body, err)
	}
	if code := end(); code != command.ExitDone || errs.String() != "" {
		t.Errorf("got exit code %d and %q, want 0 and nothing", code, errs)
	}
	if want := "https://shop.relay.example -> " + dir; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %q, want %q", out, want)
	}
	if resp, err := getFile(t, in.LocalPort, ""); err == nil {
		resp.Body.Close()
		t.Error("the folder is served after the end")
	}
	asked := d.changes()
	if want := "DELETE /api/v1/tunnels/t_1"; asked[len(asked)-1] != want {
		t.Errorf("at the end got %s, want %s", asked[len(asked)-1], want)
	}
}

func TestFilesAsksForAPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("opensesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--password"}, {"--password_file", file}} {
		d := newFakeDaemon(t)
		d.streamEvents("status " + statusJSON)
		out, _, end := startLive(t, false, append([]string{"files", sharedFolder(t, "hello"), "--json"}, args...)...)
		out.waitFor(t, "\n}")
		var shown struct{ ID, Folder, Password string }
		if err := json.Unmarshal([]byte(out.String()), &shown); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if shown.ID != "t_1" || filepath.Base(shown.Folder) != "photos" || len(shown.Password) < 10 {
			t.Errorf("%s: got %s, want the tunnel with folder and password", args, out)
		}
		port := d.firstWanted(t).LocalPort
		for password, want := range map[string]int{"": 401, shown.Password: 200} {
			resp, err := getFile(t, port, password)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s with the password %q: got %d, want %d", args, password, resp.StatusCode, want)
			}
		}
		end()
	}
}

// TestFilesForSomeAddresses: who may read them is the relay's to see to.
func TestFilesForSomeAddresses(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	out, errs, end := startLive(t, false, "files", sharedFolder(t, "hello"), "--allow", "203.0.113.0/24,192.0.2.1")
	out.waitFor(t, "session connected")
	if asked, want := d.changes()[0], `"policy":{"allow":["203.0.113.0/24","192.0.2.1"]}`; !strings.Contains(asked, want) {
		t.Errorf("asked for %s, want %s in it", asked, want)
	}
	if code := end(); code != command.ExitDone || errs.String() != "" {
		t.Errorf("got exit code %d and %q", code, errs)
	}
}

func TestFilesThatCannotBePublished(t *testing.T) {
	newFakeDaemon(t)
	dir := sharedFolder(t, "")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{filepath.Join(dir, "none")}, command.ExitFailed, "none: no such file"},
		{[]string{filepath.Join(dir, "a.txt")}, command.ExitFailed, "a.txt: not a directory"},
		{[]string{dir, "--type", "tcp"}, command.ExitUsage, "over http or https"},
		{[]string{dir, "--password", "--password_file", "-"}, command.ExitUsage, "use only one of them"},
		{[]string{dir, "--password_file", "-"}, command.ExitFailed, "- contains no password"},
	} {
		code, out, errs := run(t, "", append([]string{"files"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: got %d, %q and %q, want %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}

// TestFilesOfTwoFoldersOfOneName: the name is the folder's only while no other
// tunnel has it; one that was asked for is refused.
func TestFilesOfTwoFoldersOfOneName(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	plain := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && (strings.Contains(string(body), `"photos"`) || strings.Contains(string(body), `"photos-2"`)) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":"invalid_parameter","message":"another tunnel is called so already","field":"name"}}`)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		plain.ServeHTTP(w, r)
	})
	dir := sharedFolder(t, "hello")
	out, _, end := startLive(t, false, "files", dir)
	out.waitFor(t, "session connected")
	if in := d.firstWanted(t); in.Name != "photos-3" {
		t.Errorf("got the name %q, want the first that is free", in.Name)
	}
	end()
	code, _, errs := run(t, "", "files", dir, "--name", "photos")
	if code != command.ExitFailed || !strings.Contains(errs, "another tunnel is called so already") {
		t.Errorf("a name that was asked for: got %d and %q, want the refusal", code, errs)
	}
}
