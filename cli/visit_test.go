package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// privately has the daemon let visits of nas/ssh through to what greets, and says back
// what it is told after the visitor's end.
func (d *fakeDaemon) privately(t *testing.T) {
	t.Helper()
	d.set("GET /api/v1/visits/nas/ssh", `{"data":{"tunnel":"nas/ssh","type":"tcp"}}`)
	d.set("GET /api/v1/visits/nas/rdp", `{"error":{"code":"relay_rejected","message":"the relay refused: there is none such"}}`)
	d.set("POST /api/v1/visits/nas/rdp", `{"error":{"code":"relay_rejected","message":"the relay refused: there is none such"}}`)
	before := d.Config.Handler
	d.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/visits/nas/ssh" {
			before.ServeHTTP(w, r)
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: adit-visit\r\n\r\nhello\n")
		told, err := io.ReadAll(buf)
		if err == nil {
			conn.Write(told)
		}
	})
}

func TestVisitByStandardInputAndOutput(t *testing.T) {
	newFakeDaemon(t).privately(t)
	code, out, errs := run(t, "what is said", "visit", "nas/ssh", "--stdio")
	if code != 0 || out != "hello\nwhat is said" || errs != "" {
		t.Errorf("exit %d, out %q, errors %q", code, out, errs)
	}
	code, out, errs = run(t, "", "visit", "nas/rdp", "--stdio")
	if code != 1 || out != "" || !strings.Contains(errs, "none such") {
		t.Errorf("refused: exit %d, out %q, errors %q", code, out, errs)
	}
}

// TestVisitsGoOnWhenTheCommandWithTheDaemonEnds: adit http was there first, and is
// through with what it published.
func TestVisitsGoOnWhenTheCommandWithTheDaemonEnds(t *testing.T) {
	d := newFakeDaemon(t)
	d.privately(t)
	d.set("GET /api/v1/status", `{"data":`+strings.Replace(statusJSON, "{", `{"run_by":"adit http",`, 1)+`}`)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	env, _, errs := testEnv("")
	var ran atomic.Int32
	env.Inside = func(ctx context.Context, runBy string, ready func()) error {
		ran.Add(1)
		ln, err := net.Listen("tcp", d.Listener.Addr().String())
		if err != nil {
			return err
		}
		again := http.Server{Handler: d.Config.Handler}
		defer context.AfterFunc(ctx, func() { again.Close() })()
		ready()
		if err := again.Serve(ln); !errors.Is(err, http.ErrServerClosed) || runBy != "adit visit" {
			t.Errorf("run by %s: %v", runBy, err)
		}
		return nil
	}
	out, said := io.Pipe()
	env.Out = said
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, env, []string{"visit", "nas/ssh", "--json"})
		said.Close()
	}()
	var first struct{ Listen string }
	if err := json.NewDecoder(out).Decode(&first); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	greeted := func() {
		t.Helper()
		conn, err := net.Dial("tcp", first.Listen)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		hello := make([]byte, len("hello\n"))
		if _, err := io.ReadFull(conn, hello); err != nil || string(hello) != "hello\n" {
			t.Errorf("got %q, %v; %s", hello, err, errs)
		}
	}
	greeted()
	if ran.Load() != 0 {
		t.Error("a daemon was run beside another")
	}
	d.Close()
	var guests sync.WaitGroup
	for range 3 {
		guests.Go(greeted)
	}
	guests.Wait()
	interrupt()
	if code := <-ended; code != 0 || ran.Load() != 1 || errs.String() != "" {
		t.Errorf("exit %d, %d daemons run, errors %q", code, ran.Load(), errs)
	}
}

func TestVisitListensUntilItIsInterrupted(t *testing.T) {
	newFakeDaemon(t).privately(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	env, _, errs := testEnv("")
	out, said := io.Pipe()
	env.Out = said
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, env, []string{"visit", "adit://nas/ssh", "--json"})
		said.Close()
	}()
	var first struct{ Tunnel, Listen string }
	if err := json.NewDecoder(out).Decode(&first); err != nil || first.Tunnel != "adit://nas/ssh" {
		t.Fatalf("it says %+v, %v", first, err)
	}
	go io.Copy(io.Discard, out)
	var guests sync.WaitGroup
	for range 3 {
		guests.Go(func() {
			conn, err := net.Dial("tcp", first.Listen)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(time.Minute))
			io.WriteString(conn, "what is said")
			conn.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(conn); string(got) != "hello\nwhat is said" || err != nil {
				t.Errorf("a connection had %q, %v", got, err)
			}
		})
	}
	guests.Wait()
	open, err := net.Dial("tcp", first.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	open.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(open, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	interrupt()
	if code := <-ended; code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := io.ReadAll(open); err == nil {
		t.Error("what was open looks as if it had ended by itself")
	}
	if _, err := net.Dial("tcp", first.Listen); err == nil {
		t.Error("it listens on")
	}
}

func TestVisitsAreListed(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/visits", `{"data":{"items":[]}}`)
	d.set("GET /api/v1/invitations", `{"data":{"items":[]}}`)
	if code, out, errs := run(t, "", "visit"); code != 0 || !strings.Contains(out, "no private tunnel lets this client in") {
		t.Errorf("none: exit %d, %q, %q", code, out, errs)
	}
	d.set("GET /api/v1/invitations", `{"data":{"items":[{"tunnel":"nas/ssh","type":"tcp"},{"tunnel":"studio/files","type":"udp"}]}}`)
	d.set("GET /api/v1/visits", `{"data":{"items":[{"tunnel":"nas/ssh","type":"tcp","listen":"127.0.0.1:2222","state":"failed","error":"cannot\u001b listen","connections":{"open":1,"total":4},"bytes":{"in":5120,"out":2048}}]}}`)
	_, out, _ := run(t, "", "visit")
	golden(t, "visits", out)
	if _, out, _ := run(t, "", "visit", "--json"); !strings.Contains(out, `"listen": "127.0.0.1:2222"`) || !strings.Contains(out, `"tunnel": "studio/files"`) {
		t.Errorf("as JSON:\n%s", out)
	}
	for begun, want := range map[string]string{"": "nas/ssh studio/files :4", "st": "studio/files :4"} {
		if _, out, _ := run(t, "", "__complete", "visit", begun); strings.Join(strings.Fields(out), " ") != want {
			t.Errorf("after %q Tab offers %q, want %q", begun, out, want)
		}
	}
	if _, out, _ := run(t, "", "__complete", "visit", "nas/ssh", ""); strings.TrimSpace(out) != ":4" {
		t.Errorf("for the port Tab offers %q", out)
	}
	d.set("GET /api/v1/invitations", `{"error":{"code":"relay_unreachable","message":"the relay is away"}}`)
	code, out, errs := run(t, "", "visit")
	if code != 0 || !strings.Contains(out, "nas/ssh") || strings.Contains(out, "studio") || !strings.Contains(errs, "the relay is away") {
		t.Errorf("without the relay: exit %d, %q, %q", code, out, errs)
	}
	d.set("GET /api/v1/visits", `{"data":{"items":[]}}`)
	if _, out, _ := run(t, "", "visit"); strings.Contains(out, "no private tunnel") {
		t.Errorf("what is not known is said not to be there: %q", out)
	}
}

func TestWrongUseOfVisit(t *testing.T) {
	newFakeDaemon(t).privately(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"visit", "--stdio"}, 2, "which private tunnel"},
		{[]string{"visit", "nas/ssh", "ssh"}, 2, "must be a port"},
		{[]string{"visit", "nas/ssh", "0.0.0.0:22"}, 2, "loopback"},
		{[]string{"visit", "nas/ssh", "22", "--stdio"}, 2, "no port"},
		{[]string{"visit", "nas"}, 1, "CLIENT/NAME"},
		{[]string{"visit", "nas/rdp", "2222"}, 1, "none such"},
	} {
		code, _, errs := run(t, "", c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, %q; want %d and %q", c.args, code, errs, c.code, c.says)
		}
	}
}

func TestPrivateTunnelsByFlags(t *testing.T) {
	d := newFakeDaemon(t)
	if code, _, errs := run(t, "", "tunnel", "create", "22", "--mode", "private", "--domain", "ssh", "--visitor", "laptop,phone", "--visitor", "*"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := run(t, "", "tunnel", "update", "shop", "--visitor", ""); code != 0 {
		t.Fatal(errs)
	}
	all := strings.Join(d.requests(), "\n")
	for _, want := range []string{
		`"mode":"private"`, `"domain":"ssh"`, `"visitors":["laptop","phone","*"]`, `PATCH /api/v1/tunnels/t_1 {"visitors":[]}`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	d.set("GET /api/v1/tunnels/t_1", `{"data":`+strings.Replace(tunnelJSON, `"visitors":[]`, `"visitors":["laptop","*"]`, 1)+`}`)
	if _, out, _ := run(t, "", "tunnel", "show", "t_1"); !bytes.Contains([]byte(out), []byte("laptop, *")) {
		t.Errorf("shown without its visitors:\n%s", out)
	}
}
