package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/internal/config"
	"adit/internal/discovery"
	"adit/internal/paths"
)

// scripted is a service manager that notes what it is asked for.
type scripted struct {
	file     string
	packaged bool
	hides    bool // file hides a package's
	is       string
	program  string
	silent   error // what state and runs fail with
	refuses  error // what every change fails with
	asked    []string
}

func (m *scripted) runs(_ context.Context, exe string) (bool, error) {
	return exe == m.program, m.silent
}
func (m *scripted) name() string             { return "scripted" }
func (m *scripted) declared() (string, bool) { return m.file, m.packaged }

func (m *scripted) change(what, state, file string) error {
	m.asked = append(m.asked, what)
	if m.refuses != nil {
		return m.refuses
	}
	m.is, m.file = state, file
	return nil
}

func (m *scripted) install(context.Context, string) error {
	return m.change("install", Stopped, "/etc/adit.service")
}

func (m *scripted) uninstall(context.Context) error {
	if m.packaged = m.hides; m.hides {
		return m.change("uninstall", Stopped, "/usr/lib/adit.service")
	}
	return m.change("uninstall", "", "")
}
func (m *scripted) start(context.Context) error { return m.change("start", Running, m.file) }
func (m *scripted) stop(context.Context) error {
	if m.file == "" {
		m.asked = append(m.asked, "stop")
		return ErrNotInstalled
	}
	return m.change("stop", Stopped, m.file)
}
func (m *scripted) state(context.Context) (string, error) { return m.is, m.silent }
func (m *scripted) log() string                           { return "its log" }

// answering has Probe find a daemon that is well.
func answering(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok","version":"1.2.3"}`))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	dir := t.TempDir()
	t.Setenv(EnvRun, dir)
	t.Setenv(paths.EnvState, filepath.Join(dir, "none"))
	if err := discovery.Write(dir, discovery.New(listener.Addr(), time.Now())); err != nil {
		t.Fatal(err)
	}
}

func TestChangesTellTheStateBefore(t *testing.T) {
	answering(t)
	installs := func(ctx context.Context, m manager) (string, error) { return install(ctx, m, "/usr/bin/adit") }
	const there = "/etc/adit.service"
	for _, test := range []struct {
		name   string
		do     func(context.Context, manager) (string, error)
		m      scripted
		before string
		err    error
		asked  []string
	}{
		{"install", installs, scripted{}, NotInstalled, nil, []string{"install"}},
		{"install twice", installs, scripted{file: there, is: Stopped}, Stopped, nil, []string{"stop", "install"}},
		{"install over one that runs", installs, scripted{file: there, is: Running}, Running, nil, []string{"stop", "install", "start"}},
		{"install over one that has failed", installs, scripted{file: there, is: Failed}, Failed, nil, []string{"stop", "install", "start"}},
		{"uninstall", uninstall, scripted{file: there, is: Running}, Running, nil, []string{"stop", "uninstall"}},
		{"uninstall twice", uninstall, scripted{}, NotInstalled, nil, []string{"stop", "uninstall"}},
		{"uninstall without an answer", uninstall, scripted{file: there, silent: errors.New("no bus")}, Unknown, nil, []string{"stop", "uninstall"}},
		{"uninstall what hides a package's", uninstall, scripted{file: there, hides: true, is: Running}, Replaced, nil, []string{"stop", "uninstall", "start"}},
		{"uninstall what hides a package's and is stopped", uninstall, scripted{file: there, hides: true, is: Stopped}, Replaced, nil, []string{"stop", "uninstall"}},
		{"start", start, scripted{file: there, is: Stopped}, Stopped, nil, []string{"start"}},
		{"start twice", start, scripted{file: there, is: Running}, Running, nil, []string{"start"}},
		{"start without install", start, scripted{}, NotInstalled, ErrNotInstalled, nil},
		{"stop twice", stop, scripted{file: there, is: Stopped}, Stopped, nil, []string{"stop"}},
		{"stop without install", stop, scripted{}, NotInstalled, ErrNotInstalled, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, err := test.do(t.Context(), &test.m)
			if before != test.before || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v; want %q, %v", before, err, test.before, test.err)
			}
			if !slices.Equal(test.m.asked, test.asked) {
				t.Errorf("the manager was asked for %v, want %v", test.m.asked, test.asked)
			}
		})
	}
}

// TestAMistakeInTheConfigurationStopsNothing: the daemon that runs is worth more
// than one that cannot start.
func TestAMistakeInTheConfigurationStopsNothing(t *testing.T) {
	if _, err := current(); err != nil {
		t.Skip("this machine has no service manager")
	}
	dir := t.TempDir()
	t.Setenv(paths.EnvConfig, dir)
	for text, want := range map[string]string{
		"[log]\nlevel = \"loud\"\n": config.Name + ":2: log.level: ",
		"[[tunnel]]\nname = \"shop\"\nlocal_port = 3000\nmode = \"shared\"\n":     config.Name + ":4: tunnel[0].mode: ",
		"[[tunnel]]\nname = \"shop\"\nlocal_port = 37271\n":                       config.Name + ":1: tunnel[0].local_ip: ",
		"http_listen = \"0.0.0.0:37271\"\n":                                       "bearer_token",
		"http_listen = \":37271\"\n":                                              "bearer_token",
		"[local_api]\nbearer_token_file = '" + filepath.Join(dir, "none") + "'\n": "bearer_token_file",
	} {
		if err := os.WriteFile(filepath.Join(dir, config.Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, do := range map[string]func(context.Context) (string, error){"start": Start, "restart": Restart} {
			if _, err := do(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "left as it was") {
				t.Errorf("%s with %q: got error %v, want %q and that nothing was done", name, text, err, want)
			}
		}
		m := scripted{file: "/etc/adit.service", is: Running}
		if _, err := install(t.Context(), &m, "/usr/bin/adit"); err == nil || len(m.asked) > 0 {
			t.Errorf("install with %q: got error %v and %v asked of the manager, want nothing to be done", text, err, m.asked)
		}
	}
	for _, text := range []string{
		"[[tunnel]]\nname = \"shop\"\nlocal_port = 3000\n",
		"[local_api]\nbearer_token_file = \"/run/credentials/adit.service/api-token\"\n", // not there before the start
	} {
		if err := os.WriteFile(filepath.Join(dir, config.Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkConfig(); err != nil {
			t.Errorf("%q, which is no mistake: got %v", text, err)
		}
	}
}

// TestMissingRightsSayWhatToDo: whoever may not change the service learns how
// they may, whatever the manager has said.
func TestMissingRightsSayWhatToDo(t *testing.T) {
	if elevated() {
		t.Skip("an administrator lacks no rights")
	}
	no := errors.New("access denied")
	for name, do := range map[string]func(context.Context, manager) (string, error){
		"uninstall": uninstall, "start": start, "stop": stop,
	} {
		_, err := do(t.Context(), &scripted{file: "/etc/adit.service", is: Running, refuses: no})
		if !errors.Is(err, no) || !strings.Contains(err.Error(), elevationHint) {
			t.Errorf("%s: got %v, want the hint %q", name, err, elevationHint)
		}
	}
}

func TestAServiceRunsItsOwnProgramAlone(t *testing.T) {
	const file, ours, packages = "/etc/adit.service", "/usr/local/bin/adit", "/usr/bin/adit"
	for name, tt := range map[string]struct {
		m    scripted
		want bool
	}{
		"ours":                  {scripted{file: file, is: Running, program: ours}, true},
		"ours, failed":          {scripted{file: file, is: Failed, program: ours}, true},
		"ours, stopped":         {scripted{file: file, is: Stopped, program: ours}, false},
		"a package's":           {scripted{file: file, is: Running, program: packages, packaged: true}, false},
		"none":                  {scripted{program: ours}, false},
		"one that does not say": {scripted{file: file, program: packages, silent: errors.New("no answer")}, true},
	} {
		if got := runs(t.Context(), &tt.m, ours); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}
