package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/localapi/client"
)

// bearer shows a Bearer token with every request, as a host product does.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestRoundsLeaveNothing makes and deletes tunnels in rounds, as a host product
// does for days, beside readers of events that come and go. The daemon is
// afterwards as it was.
func TestRoundsLeaveNothing(t *testing.T) {
	const (
		token  = "of-the-host-product"
		warm   = 50
		rounds = 200
		grown  = 3 << 20 // bytes of live heap, of which log and feed fill some
	)
	relay := newRelay(t)
	dir := t.TempDir()
	config, state := filepath.Join(dir, "config"), filepath.Join(dir, "state")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "adit.toml"), []byte("[local_api]\nbearer_token = \""+token+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The collector runs often, so that the least that is seen is what lives.
	a := &agent{
		t: t, dir: dir, listen: freeport.Loopback(t), client: &http.Client{Transport: bearer(token)},
		env: []string{"ADIT_CONFIG_DIR=" + config, "ADIT_STATE_DIR=" + state, "GOGC=25"},
	}
	a.start()
	a.configure(relay.client("host"))
	sdk := client.New("http://"+a.listen, client.WithBearer(token))
	kinds := []string{"http", "https", "tls", "tcp", "udp"}
	round := func(n int) {
		kind, domain := kinds[n%len(kinds)], fmt.Sprintf("round-%d", n%7)
		if kind == "tcp" || kind == "udp" {
			domain = ""
		}
		if n%2 == 0 {
			var made, read tunnel
			a.ok(http.StatusCreated, "POST", "/api/v1/tunnels", map[string]any{"type": kind, "local_port": 9, "domain": domain, "name": "round"}, &made)
			a.ok(http.StatusOK, "GET", "/api/v1/tunnels/"+made.ID, nil, &read)
			a.ok(http.StatusNoContent, "DELETE", "/api/v1/tunnels/"+made.ID, nil, nil)
			a.ok(http.StatusNotFound, "GET", "/api/v1/tunnels/"+made.ID, nil, nil)
			return
		}
		made, err := sdk.CreateTunnel(t.Context(), client.TunnelCreate{Type: client.TunnelType(kind), LocalPort: 9, Domain: domain, Name: "round"})
		if err != nil {
			t.Fatal(err)
		}
		if read, err := sdk.Tunnel(t.Context(), made.ID); err != nil || read.ID != made.ID {
			t.Fatalf("got %+v, %v", read, err)
		}
		if err := sdk.DeleteTunnel(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
	}
	spell := func(n int) (least int64) {
		readers, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { comeAndGo(readers, sdk, i) })
		}
		for i := range n {
			round(i)
			if now := a.figure("go_memstats_heap_alloc_bytes"); i == 0 || now < least {
				least = now
			}
		}
		stop()
		wg.Wait()
		return least
	}
	spell(warm)
	before := a.atRest()
	start := spell(warm)
	spell(rounds)
	end := spell(warm)
	var after rest
	await(t, "the daemon is as before", func() error {
		if after = a.atRest(); after.goroutines > before.goroutines || after.files > before.files {
			return fmt.Errorf("%+v, and before %+v", after, before)
		}
		return nil
	})
	t.Logf("before %+v, after %+v; live heap %d KiB, then %d", before, after, start>>10, end>>10)
	if end > start+grown {
		t.Errorf("the heap has grown from %d to %d KiB", start>>10, end>>10)
	}
	a.leftNothing(state)
	if text := must(t, nil, "relay", "domains", "--data_dir", relay.dir, "--json"); strings.Contains(text, "round-") {
		t.Errorf("the relay keeps names: %s", text)
	}
}

// comeAndGo reads events and leaves, again and again, until ctx ends: some take
// up where they were, and every third does not read at all.
func comeAndGo(ctx context.Context, sdk *client.Client, n int) {
	last := ""
	for i := n; ctx.Err() == nil; i++ {
		once, leave := context.WithTimeout(ctx, time.Duration(i%3)*20*time.Millisecond+time.Millisecond)
		for e, err := range sdk.Events(once, last) {
			if err != nil {
				break
			}
			last = e.ID
			if i%2 == 0 {
				break
			}
		}
		leave()
		if i%5 == 0 {
			last = ""
		}
	}
}

// rest is what a daemon has that nobody asks anything.
type rest struct{ goroutines, files int }

// atRest waits until no event stream is open and all that they had is gone:
// until two looks see the same.
func (a *agent) atRest() (now rest) {
	a.t.Helper()
	var last rest
	await(a.t, "the daemon rests", func() error {
		http.DefaultClient.CloseIdleConnections()
		files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(a.proc.cmd.Process.Pid), "fd"))
		if err != nil {
			return err
		}
		last, now = now, rest{int(a.figure("go_goroutines")), len(files)}
		if open := a.figure("adit_local_api_event_streams"); open > 0 || now != last {
			return fmt.Errorf("%d streams, %+v, and before %+v", open, now, last)
		}
		return nil
	})
	return now
}

// figure is one of the daemon's figures that has no labels.
func (a *agent) figure(name string) int64 {
	a.t.Helper()
	resp, err := a.client.Get("http://" + a.listen + "/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				a.t.Fatal(err)
			}
			return int64(v)
		}
	}
	a.t.Fatalf("/metrics has no %s", name)
	return 0
}

// leftNothing fails unless the state folder is that of a daemon without tunnels.
func (a *agent) leftNothing(state string) {
	a.t.Helper()
	var saved map[string]any
	text, err := os.ReadFile(filepath.Join(state, "tunnels.json"))
	if err != nil {
		a.t.Fatal(err)
	}
	decode(a.t, string(text), &saved)
	for key, value := range saved {
		if list, isList := value.([]any); key != "version" && value != nil && !(isList && len(list) == 0) {
			a.t.Errorf("tunnels.json still has %s: %v", key, value)
		}
	}
	files, err := os.ReadDir(state)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains([]string{"agent.lock", "auth.json", "runtime.json", "tunnels.json"}, f.Name()) {
			a.t.Errorf("the state folder still has %s", f.Name())
		}
	}
}
