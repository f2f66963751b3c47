package service

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/discovery"
	"adit/internal/paths"
)

func TestDeclarationsNameTheProgram(t *testing.T) {
	for _, exe := range []string{"/usr/bin/adit", "/opt/my tools/adit", `/opt/50%/$HOME/a"b`} {
		for kind, text := range map[string]string{
			"systemd": SystemdUnit(exe), "openrc": OpenRCScript(exe), "sysv": SysVScript(exe), "launchd": LaunchdPlist(exe),
		} {
			if strings.Contains(text, "@") && strings.Contains(text, "@EXEC@") {
				t.Errorf("%s for %s: the program's place is still empty", kind, exe)
			}
		}
	}
	if got, want := SystemdUnit("/opt/50%/x y"), `ExecStart="/opt/50%%/x y" start`; !strings.Contains(got, want) {
		t.Errorf("got unit %s\nwant in it %s", got, want)
	}
	if got, want := OpenRCScript("/opt/$x"), `command="'/opt/\$x'"`; !strings.Contains(got, want) {
		t.Errorf("got script %s\nwant in it %s", got, want)
	}
}

func TestLaunchdPlistIsWellFormed(t *testing.T) {
	dec := xml.NewDecoder(strings.NewReader(LaunchdPlist("/Applications/A & B.app/adit")))
	var text strings.Builder
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
		}
	}
	for _, want := range []string{"/Applications/A & B.app/adit", "KeepAlive", "ThrottleInterval", Label} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the plist has no %q", want)
		}
	}
}

func TestSystemdUnitBringsTheDaemonBackAndConfinesIt(t *testing.T) {
	unit := SystemdUnit("/usr/bin/adit")
	for _, want := range []string{"Restart=always\n", "RestartSec=2\n", "DynamicUser=yes\n", "StateDirectory=adit\n", "NoNewPrivileges=yes\n", "ProtectSystem=strict\n", "WantedBy=multi-user.target\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %q", strings.TrimSpace(want))
		}
	}
	if strings.Contains(unit, "\nConfigurationDirectory=") {
		t.Error("the unit gives the configuration to the service, which may then write to it")
	}
}

func TestProbeFollowsRuntimeFile(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"status":"ok","version":"1.2.3"}`)
	})}
	go server.Serve(listener)
	defer server.Close()
	dir := t.TempDir()
	t.Setenv(EnvRun, dir)
	t.Setenv(paths.EnvState, filepath.Join(dir, "none"))
	if err := discovery.Write(dir, discovery.New(listener.Addr(), time.Now())); err != nil {
		t.Fatal(err)
	}
	health, err := Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if health.Version != "1.2.3" || health.Address != listener.Addr().String() {
		t.Errorf("got %+v", health)
	}
}

// A person's own daemon at the usual address must not pass for the service that
// has just failed to start because of it.
func TestProbeTakesNoOtherDaemonForTheService(t *testing.T) {
	if !tellsEverybody {
		t.Skip("the services of this system may have no runtime.json")
	}
	t.Setenv(EnvRun, t.TempDir())
	if health, err := Probe(context.Background()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %+v and error %v, want that there is no runtime.json", health, err)
	}
}

func TestProbeRefusesAnotherProgram(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<html>`)
	})}
	go server.Serve(listener)
	defer server.Close()
	dir := t.TempDir()
	t.Setenv(EnvRun, dir)
	if err := discovery.Write(dir, discovery.New(listener.Addr(), time.Now())); err != nil {
		t.Fatal(err)
	}
	if _, err := Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "something else answers") {
		t.Errorf("got error %v, want that something else answers", err)
	}
}

func TestPackagedScriptIsTold(t *testing.T) {
	script := PackagedScript(OpenRCScript("/usr/bin/adit"))
	if !strings.HasPrefix(script, "#!/sbin/openrc-run\n"+packageMark+"\n") {
		t.Errorf("got %s", script[:80])
	}
}
