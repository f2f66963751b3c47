package cli

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"adit/cli/command"
)

func TestPortsHaveATunnelEach(t *testing.T) {
	d := newFakeDaemon(t)
	code, out, errs := run(t, "", strings.Fields("tunnel create 10.0.0.7:27015 --type udp --ports 3 --remote_port 20015 --name game --json")...)
	if code != 0 || strings.Count(out, `"id"`) != 3 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	want := []string{
		`POST /api/v1/tunnels {"type":"udp","local_ip":"10.0.0.7","local_port":27015,"name":"game-27015","remote_port":20015}`,
		`POST /api/v1/tunnels {"type":"udp","local_ip":"10.0.0.7","local_port":27016,"name":"game-27016","remote_port":20016}`,
		`POST /api/v1/tunnels {"type":"udp","local_ip":"10.0.0.7","local_port":27017,"name":"game-27017","remote_port":20017}`,
	}
	if got := d.requests(); !slices.Equal(got, want) {
		t.Errorf("asked for\n%s", strings.Join(got, "\n"))
	}
}

// refusesTunnel has d refuse the nth tunnel that it is to make, and those after it.
func (d *fakeDaemon) refusesTunnel(nth int32, problem string) {
	var wanted atomic.Int32
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && wanted.Add(1) == nth {
			d.set("POST /api/v1/tunnels", `{"error":`+problem+`}`)
		}
		d.serve(w, r)
	})
}

// The daemon refuses the third: the two that were made are removed.
func TestPortsAreAllPublishedOrNone(t *testing.T) {
	d := newFakeDaemon(t)
	d.refusesTunnel(3, `{"code":"conflict","message":"the port 20002 is taken"}`)
	code, out, errs := run(t, "", strings.Fields("tunnel create 20000 --type tcp --ports 5")...)
	if code != command.ExitFailed || out != "" || !strings.Contains(errs, "port 20002: the port 20002 is taken") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if strings.Contains(errs, "stay") {
		t.Errorf("says that tunnels stay: %s", errs)
	}
	got := d.requests()
	if len(got) != 5 || got[3] != "DELETE /api/v1/tunnels/t_1" || got[4] != got[3] {
		t.Errorf("asked for\n%s", strings.Join(got, "\n"))
	}
}

// A tunnel that cannot be removed again is named.
func TestPortsThatStayAreNamed(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("DELETE /api/v1/tunnels/t_1", `{"error":{"code":"internal","message":"the disk is full"}}`)
	d.refusesTunnel(2, `{"code":"relay_unreachable","message":"no answer"}`)
	code, _, errs := run(t, "", strings.Fields("tunnel create 20000 --type tcp --ports 5")...)
	const want = "port 20001: no answer; run `adit doctor` to find out why; of the other ports' tunnels these stay: t_1"
	if code != command.ExitFailed || !strings.Contains(errs, want) {
		t.Errorf("exit code %d: %s, want %s", code, errs, want)
	}
}

func TestPortsThatAreNoneAreWrongUse(t *testing.T) {
	d := newFakeDaemon(t)
	for _, args := range []string{
		"22 --type tcp --ports 0", "22 --type tcp --ports 257", "22 --type tcp --ports -1", "22 --ports 2", "22 --type tls --ports 2",
		"65535 --type udp --ports 2", "22 --type udp --remote_port 65300 --ports 256",
	} {
		if code, out, errs := run(t, "", strings.Fields("tunnel create "+args)...); code != command.ExitUsage || out != "" || !strings.Contains(errs, "ports") {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, errs)
		}
	}
	if got := d.requests(); len(got) > 0 {
		t.Errorf("%d requests, first %s", len(got), got[0])
	}
	if code, _, errs := run(t, "", strings.Fields("tunnel create 65280 --type tcp --ports 256")...); code != 0 {
		t.Errorf("the last 256 ports: exit code %d: %s", code, errs)
	}
}
