package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adit/internal/require"
)

const (
	daemonAnswers  = "curl -fs -o /dev/null http://127.0.0.1:37271/healthz"
	connected      = `curl -fs http://127.0.0.1:37271/api/v1/status | grep -q '"connected":true'`
	consoleAnswers = "curl -fs -o /dev/null http://127.0.0.1:37280/healthz"
	// The tunnels of adit dev are made once it is connected.
	devAnswers  = `[ "$(curl -fs http://127.0.0.1:37271/api/v1/endpoints | grep -oE 'https?://sample\.localhost:[0-9]+' | sort -u | wc -l)" = 2 ]`
	relayStarts = "adit relay start --domain tunnel.example.com"
	tunnelRuns  = `adit endpoints --json | grep -q '"public_url"'`
)

// lasting are the commands that do not end by themselves, by their beginning.
var lasting = []struct {
	begins string
	ready  string // a command that succeeds when it does what it is for
	stays  bool   // the rest of the document needs it
}{
	{"go run . dev", devAnswers, false},
	{"adit dev", devAnswers, false},
	{"adit relay start", consoleAnswers, true},
	{"adit start", daemonAnswers, true},
	{"adit http ", tunnelRuns, false},
	{"adit https ", tunnelRuns, false},
	{"curl -N", "true", false},
}

// elsewhere are the commands that another test runs, by their beginning, and
// that test's name.
var elsewhere = map[string]string{
	"go test ./...":       "TestDocuments", // runs this
	"go run ./build/pack": "TestPackTwiceGivesTheSameBytes",
	"adit service":        "TestServiceUnderInitScripts",
	"install -m 755 adit": "TestServiceUnderInitScripts",
	"adit update":         "TestUpdateAsACommand",
}

// outward are the commands that ask another host, of which there is none here,
// by their beginning, and what they have to say then.
var outward = map[string]string{
	"adit relay sink test": "siem.example.com",
}

// before is what a document takes as given.
var before = map[string][]string{
	"docs/commands.md":                  {"adit relay start --domain example.com", "adit relay client add docs"},
	"docs/recipes.md":                   {"adit relay start --domain example.com", "adit relay client add docs", "adit start", "adit login adit_…"},
	"docs/relay/clients.md":             {relayStarts},
	"docs/relay/policies.md":            {relayStarts},
	"docs/relay/client-certificates.md": {relayStarts},
	"docs/relay/webhooks.md":            {relayStarts},
	"docs/relay/logs.md":                {relayStarts},
	"docs/relay/console.md":             {relayStarts},
	"docs/relay/data.md":                {relayStarts},
	"docs/relay/sign-in.md": {
		"mkdir -p ~/.config/adit && echo secret > ~/.config/adit/secret && chmod 600 ~/.config/adit/secret",
		`printf '%s\n' '[[sign_in]]' 'name = "company"' 'issuer = "https://login.example.com"' 'client_id = "adit"' ` +
			`'[[sign_in]]' 'name = "github"' 'type = "github"' 'client_id = "adit"' 'client_secret_file = "secret"' > ~/.config/adit/relay.toml`,
		relayStarts,
	},
	"docs/local-api.md": {"adit relay start --domain example.com", "adit relay client add workshop-nas --own_policies", "adit start"},
}

func TestDocuments(t *testing.T) {
	require.Opted(t)
	require.Root(t)
	copied := cleanCopy(t)
	seen := 0
	for name, text := range documents(t) {
		list := commands(text, name)
		if len(list) == 0 {
			continue
		}
		seen += len(list)
		t.Run(name, func(t *testing.T) {
			s := newShell(t, copied)
			if name != "README.md" { // which builds it itself
				s.must("go build -o adit .")
			}
			for _, given := range before[name] {
				try(t, s, command{"before " + name, given})
			}
			for _, c := range list {
				try(t, s, c)
			}
		})
	}
	if seen < 15 {
		t.Errorf("found %d commands in all documents", seen)
	}
}

func try(t *testing.T, s *shell, c command) {
	t.Helper()
	text := strings.ReplaceAll(strings.TrimPrefix(c.text, "sudo "), "./adit", "adit")
	for begins, test := range elsewhere {
		if strings.HasPrefix(text, begins) || strings.HasPrefix(c.text, begins) {
			mustExist(t, test)
			return
		}
	}
	t.Logf("%s: %s", c.where, c.text)
	for _, l := range lasting {
		if !strings.HasPrefix(text, l.begins) {
			continue
		}
		s.begin(c.text, l.ready)
		if strings.Contains(text, " dev") {
			published(t, s)
		}
		if !l.stays {
			s.interrupt()
		}
		return
	}
	for begins, says := range outward {
		if strings.HasPrefix(text, begins) {
			if printed, code := s.run(c.text); code != "1" || !strings.Contains(printed, says) {
				t.Errorf("%s: %s: exit code %s, printed %q, want 1 and %q", c.where, c.text, code, printed, says)
			}
			return
		}
	}
	if printed, code := s.run(c.text); code != "0" {
		t.Fatalf("%s: %s: exit code %s, printed %q", c.where, c.text, code, printed)
	} else if strings.HasPrefix(text, "curl") && strings.Contains(printed, `"error":{`) {
		t.Errorf("%s: %s: answered %q", c.where, c.text, printed)
	}
	if strings.HasPrefix(text, "adit login") {
		if _, code := s.run(daemonAnswers); code == "0" { // else login ran one itself, which has ended
			s.await(connected)
		}
	}
}

var publicURL = regexp.MustCompile(`https?://sample\.localhost:\d+`)

// published holds that the two public URLs of adit dev lead to port 8000.
func published(t *testing.T, s *shell) {
	t.Helper()
	printed := s.must("curl -fs http://127.0.0.1:37271/api/v1/endpoints")
	want := s.must("curl -fs http://127.0.0.1:8000/")
	urls := publicURL.FindAllString(printed, -1)
	slices.Sort(urls)
	if urls = slices.Compact(urls); len(urls) != 2 {
		t.Errorf("adit dev: got the public URLs %v in %q, want two", urls, printed)
	}
	for _, url := range urls {
		if got := s.must("curl -fsk " + url + "/"); got != want {
			t.Errorf("%s: got %q, want %q as from port 8000", url, got, want)
		}
	}
}

// cleanCopy lays what git has of this folder, as it stands here, elsewhere.
func cleanCopy(t *testing.T) string {
	t.Helper()
	git := require.Tool(t, "git")
	list, err := exec.Command(git, "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("list what git has: %v", err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted here, and not yet in git
		} else if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mustExist holds that a test of this name is somewhere in the project.
func mustExist(t *testing.T, name string) {
	t.Helper()
	out, err := exec.Command(require.Tool(t, "git"), "-C", root, "grep", "--untracked", "-l", "func "+name+"(", "--", "*_test.go").Output()
	if err != nil || len(out) == 0 {
		t.Errorf("there is no test %s: %v", name, err)
	}
}
