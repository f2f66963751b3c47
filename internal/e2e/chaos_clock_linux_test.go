package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/freeport"
)

// TestChaosOfClocks is TestChaos with relay and daemon whose wall clocks jump by
// seconds, hours, days and years, forward and back, each alone or both, between
// and during the other faults. After each, beside what TestChaos asks for, what
// both tell of themselves is of the time that their clock shows, a browser can
// sign in to both, and nothing that was configured is lost.
func TestChaosOfClocks(t *testing.T) {
	length, seed := chaosOf(t)
	l := newClocksWith(t, "")
	c := newChaosBetween(t, l.relay, l.agent, newOrigin(t), newEcho(t))
	l.begin(c.tunnels)
	c.run(length, seed, append(c.faults(), l.faults(seed)...))
	l.set(0, 0)
	l.sane("at last, with the clocks right")
	c.awaitWhole()
}

// clocks is a relay and a daemon with clocks that can be set.
type clocks struct {
	t          *testing.T
	relay      *relay
	agent      *agent
	here, far  *clock // the daemon's and the relay's
	begun      time.Time
	configured string
}

// newClocksWith starts both, with more for the daemon's adit.toml and the relay's
// command line.
func newClocksWith(t *testing.T, config string, extra ...string) *clocks {
	t.Helper()
	l := &clocks{t: t, here: newClock(t), far: newClock(t), begun: time.Now()}
	l.relay = prepareRelay(t, extra...)
	l.relay.program, l.relay.env, l.relay.time = l.far.program, []string{l.far.env()}, l.visitors
	l.relay.start()
	l.agent = prepareAgent(t, freeport.Loopback(t), "[local_api]\nbearer_token = \""+bearerToken+"\"\n"+config)
	l.agent.program, l.agent.env = l.here.program, append(l.agent.env, l.here.env())
	l.agent.client = &http.Client{Transport: withBearer{}}
	l.agent.start()
	return l
}

// visitors is the time of visitors: what the relay's certificates are for. They
// follow its clock forward, where its authority is still valid. Back, where it is
// not yet, their own clock is right.
func (l *clocks) visitors() time.Time { return time.Now().Add(max(0, l.far.moved())) }

// withBearer shows the local API its token.
type withBearer struct{}

func (withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+bearerToken)
	return http.DefaultTransport.RoundTrip(r)
}

// begin notes what is configured, and must be to the end.
func (l *clocks) begin(tunnels map[string]tunnel) {
	l.t.Helper()
	policy := filepath.Join(l.t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"deny":["192.0.2.1"]}`), 0o600); err != nil {
		l.t.Fatal(err)
	}
	target := strings.TrimPrefix(strings.SplitN(tunnels["http"].PublicURL, ".", 2)[0], "http://")
	must(l.t, nil, "relay", "policy", "set", target, policy, "--data_dir", l.relay.dir)
	l.configured = l.lists()
	for _, want := range []string{"laptop", "192.0.2.1", tunnels["tcp"].ID} {
		if !strings.Contains(l.configured, want) {
			l.t.Fatalf("%q is not in what is configured:\n%s", want, l.configured)
		}
	}
}

// set sets both clocks, and waits until both are seen to show it.
func (l *clocks) set(agent, relay time.Duration) {
	l.t.Helper()
	l.here.set(agent)
	l.far.set(relay)
	l.here.shown("http://" + l.agent.listen + "/healthz")
	l.far.shown("http://" + l.relay.console + "/healthz")
}

// jump is a clock's next offset from the right time.
func jump(random *rand.Rand) time.Duration {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		one  time.Duration
		most int
	}{{time.Second, 60}, {time.Hour, 24}, {day, 300}, {365 * day, 8}} {
		if random.IntN(5) < 2 {
			return time.Duration(random.IntN(2)*2-1) * (unit.one + time.Duration(random.Int64N(int64(unit.most)*int64(unit.one))))
		}
	}
	return 0 // it is set right
}

func (l *clocks) faults(seed uint64) []fault {
	random := rand.New(rand.NewPCG(seed, 11))
	set := func(what string, agent, relay time.Duration) {
		what = fmt.Sprintf("%s: the daemon's clock %+v, the relay's %+v", what, agent, relay)
		l.t.Log(what)
		l.set(agent, relay)
		l.sane(what)
	}
	return []fault{
		{"daemon's clock set", func(time.Duration) { set("daemon", jump(random), l.far.moved()) }},
		{"relay's clock set", func(time.Duration) { set("relay", l.here.moved(), jump(random)) }},
		{"both clocks set", func(time.Duration) {
			to := jump(random)
			set("both", to, to)
		}},
		{"clock set there and back", func(length time.Duration) {
			agent, relay := l.here.moved(), l.far.moved()
			set("there", jump(random), jump(random))
			<-time.After(length)
			set("and back", agent, relay)
		}},
		{"clocks set while the relay is down", func(length time.Duration) {
			l.relay.proc.kill()
			<-time.After(length)
			l.here.set(jump(random))
			l.far.set(jump(random))
			l.relay.start()
			set("relay restarted", l.here.moved(), l.far.moved())
		}},
		{"clocks set while the daemon is down", func(length time.Duration) {
			l.agent.proc.kill()
			l.here.set(jump(random))
			l.far.set(jump(random))
			<-time.After(length)
			l.agent.start()
			set("daemon restarted", l.here.moved(), l.far.moved())
		}},
	}
}

// sane checks what both tell of themselves, and that people and what is
// configured are where they were.
func (l *clocks) sane(what string) {
	t := l.t
	t.Helper()
	await(t, what+": the daemon is connected", func() error {
		if s := l.agent.status(); !s.Connected {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	// since checks a moment of a process that runs since the test began at most.
	since := func(name string, at time.Time, c *clock) {
		t.Helper()
		now := c.now()
		if at.IsZero() || at.After(now.Add(clockSlack)) || at.Before(now.Add(-time.Since(l.begun)-clockSlack)) {
			t.Errorf("%s: %s is %v, and its clock shows %v", what, name, at, now)
		}
	}
	var status struct {
		Connected      bool       `json:"connected"`
		RTT            float64    `json:"rtt_ms"`
		ConnectedSince *time.Time `json:"connected_since"`
		StartedAt      time.Time  `json:"started_at"`
	}
	l.agent.ok(http.StatusOK, "GET", "/api/v1/status", nil, &status)
	since("the daemon's started_at", status.StartedAt, l.here)
	if status.ConnectedSince != nil {
		since("connected_since", *status.ConnectedSince, l.here)
	}
	if status.RTT < 0 || status.RTT > 1000*patience.Seconds() {
		t.Errorf("%s: rtt_ms is %v", what, status.RTT)
	}
	var endpoints struct {
		Items []struct {
			Name  string    `json:"name"`
			State string    `json:"state"`
			Since time.Time `json:"since"`
		} `json:"items"`
	}
	l.agent.ok(http.StatusOK, "GET", "/api/v1/endpoints", nil, &endpoints)
	for _, e := range endpoints.Items {
		if e.State == "running" {
			since("the endpoint "+e.Name+"'s since", e.Since, l.here)
		}
	}
	console := l.signInToConsole()
	var relay struct {
		Data struct {
			StartedAt time.Time `json:"started_at"`
		} `json:"data"`
	}
	decode(t, l.ask("http://"+l.relay.console+"/api/v1/status", console), &relay)
	since("the relay's started_at", relay.Data.StartedAt, l.far)
	var sessions struct {
		Data struct {
			Items []struct {
				Since time.Time `json:"since"`
				RTT   float64   `json:"rtt_ms"`
			} `json:"items"`
		} `json:"data"`
	}
	decode(t, l.ask("http://"+l.relay.console+"/api/v1/sessions", console), &sessions)
	for _, s := range sessions.Data.Items {
		since("a session's since", s.Since, l.far)
		if s.RTT < 0 {
			t.Errorf("%s: a session's rtt_ms is %v", what, s.RTT)
		}
	}
	l.ask("http://"+l.agent.listen+"/api/v1/tunnels", l.signInToWebUI())
	if got := l.lists(); got != l.configured {
		t.Errorf("%s: configured is\n%s\nand was\n%s", what, got, l.configured)
	}
}

// clockSlack is how much the moments that are told may be off.
const clockSlack = 10 * time.Second

// signInToConsole signs a browser in by the admin token, and returns its cookie.
func (l *clocks) signInToConsole() *http.Cookie {
	l.t.Helper()
	token, err := os.ReadFile(filepath.Join(l.relay.dir, "admin_token"))
	if err != nil {
		l.t.Fatal(err)
	}
	return l.signIn("http://"+l.relay.console+"/api/v1/session", `{"token":"`+strings.TrimSpace(string(token))+`"}`)
}

// signInToWebUI signs a browser in by a link, and returns its cookie.
func (l *clocks) signInToWebUI() *http.Cookie {
	l.t.Helper()
	var link struct{ URL string }
	l.agent.ok(http.StatusCreated, "POST", "/api/v1/login-links", nil, &link)
	_, code, _ := strings.Cut(link.URL, "#")
	return l.signIn("http://"+l.agent.listen+"/api/v1/session", `{"code":"`+code+`"}`)
}

func (l *clocks) signIn(url, body string) *http.Cookie {
	l.t.Helper()
	resp, text := send(l.t, "POST", url, body, http.Header{"Content-Type": {"application/json"}})
	if len(resp.Cookies()) != 1 {
		l.t.Fatalf("sign in at %s: %s %s", url, resp.Status, text)
	}
	return resp.Cookies()[0]
}

func (l *clocks) ask(url string, cookie *http.Cookie) string {
	l.t.Helper()
	resp, text := send(l.t, "GET", url, "", http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}})
	if resp.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %s %s", url, resp.Status, text)
	}
	return text
}

// lists is all that is configured, without what changes by itself.
func (l *clocks) lists() string {
	l.t.Helper()
	var tunnels struct {
		Items []struct {
			tunnel
			CreatedAt time.Time `json:"created_at"`
		} `json:"items"`
	}
	l.agent.ok(http.StatusOK, "GET", "/api/v1/tunnels", nil, &tunnels)
	var b strings.Builder
	for _, t := range tunnels.Items {
		fmt.Fprintln(&b, t.ID, t.Type, t.Domain, t.CreatedAt)
	}
	cookie := l.signInToConsole()
	var clients struct {
		Data struct {
			Items []struct {
				ID        string    `json:"id"`
				Name      string    `json:"name"`
				CreatedAt time.Time `json:"created_at"`
			} `json:"items"`
		} `json:"data"`
	}
	decode(l.t, l.ask("http://"+l.relay.console+"/api/v1/clients", cookie), &clients)
	fmt.Fprintln(&b, clients.Data.Items)
	fmt.Fprintln(&b, l.ask("http://"+l.relay.console+"/api/v1/policies", cookie))
	return b.String()
}
