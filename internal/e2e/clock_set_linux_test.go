package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// TestSettingTheClockCutsNobody sets the clocks of relay and daemon while a
// session, a UDP visitor's flow and a request are under way: all go on, however
// far the clock is set, and a flow that is silent ends in its time.
func TestSettingTheClockCutsNobody(t *testing.T) {
	require.Opted(t)
	for _, transport := range []string{"dtls", "tls"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			config := relayConfig(t, "[limits]\nudp_idle = \"15s\"\n")
			l := newClocksWith(t, "[session]\ntransport = \""+transport+"\"\n", "--config", config)
			l.agent.configure(l.relay.client("laptop"))
			web := l.agent.publish("http", newOrigin(t), map[string]any{"domain": "site"})
			datagrams := l.agent.publish("udp", serveUDP(t, func(_ []byte, from net.Addr) []byte { return []byte(from.String()) }), nil)
			session := l.session()
			flow := startFlow(t, strings.TrimPrefix(datagrams.PublicURL, "udp://"))
			first := flow.answer()
			visitor := l.relay.visitor()
			await(t, "the site answers", answers(visitor, web.PublicURL))
			asked := make(chan error, 1)
			go func() {
				_, _, err := fetch(visitor, web.PublicURL+"/sse?n=2")
				asked <- err
			}()
			const year = 365 * 24 * time.Hour
			for _, to := range []time.Duration{time.Hour, -year, year} {
				l.set(to, to)
				// Silence, while the relay looks for idle flows every four seconds, and
				// then traffic, for which both look whether the other was heard.
				<-time.After(4500 * time.Millisecond)
				if from := flow.answer(); from != first {
					t.Errorf("clock set by %v: the origin heard the visitor from %s, and then from %s", to, first, from)
				}
				if now := l.session(); now != session {
					t.Fatalf("clock set by %v: the session was %s and is %s", to, session, now)
				}
			}
			for range 2 {
				await(t, "the request goes on", answers(visitor, web.PublicURL+"/next"))
			}
			if err := <-asked; err != nil {
				t.Errorf("the request under way: %v", err)
			}
			l.durations("/sse")
			flow.stop()
			l.set(-2*year, -2*year)
			await(t, "the silent flow ends, the clock having been set back by years", func() error {
				var list struct {
					Items []struct {
						Type        string `json:"type"`
						Connections struct {
							Open int `json:"open"`
						} `json:"connections"`
					} `json:"items"`
				}
				l.agent.ok(http.StatusOK, "GET", "/api/v1/endpoints", nil, &list)
				for _, e := range list.Items {
					if e.Type == "udp" && e.Connections.Open != 0 {
						return fmt.Errorf("%d are open", e.Connections.Open)
					}
				}
				return nil
			})
		})
	}
}

// session is the id of the only session.
func (l *clocks) session() string {
	l.t.Helper()
	var sessions struct {
		Data struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
		} `json:"data"`
	}
	decode(l.t, l.ask("http://"+l.relay.console+"/api/v1/sessions", l.signInToConsole()), &sessions)
	if len(sessions.Data.Items) != 1 || sessions.Data.Items[0].ID == "" {
		l.t.Fatalf("sessions %+v", sessions.Data.Items)
	}
	return sessions.Data.Items[0].ID
}

// durations requires that the last request of a path took no longer than the
// test, for the inspector and in the access events.
func (l *clocks) durations(path string) {
	t := l.t
	t.Helper()
	check := func(who string, took time.Duration) {
		t.Helper()
		if took <= 0 || took > time.Since(l.begun) {
			t.Errorf("%s: a request took %v, of a test that began %v ago", who, took, time.Since(l.begun))
		}
	}
	await(t, "the inspector has the request", func() error {
		var list struct {
			Items []struct {
				ID     string  `json:"id"`
				State  string  `json:"state"`
				Path   string  `json:"path"`
				Millis float64 `json:"duration_ms"`
			} `json:"items"`
		}
		l.agent.ok(http.StatusOK, "GET", "/api/v1/requests?q="+url.QueryEscape(path), nil, &list)
		if len(list.Items) != 1 || list.Items[0].State == "open" {
			return fmt.Errorf("requests %+v", list.Items)
		}
		check("the inspector", time.Duration(list.Items[0].Millis*float64(time.Millisecond)))
		return nil
	})
	for _, e := range l.access("path=" + url.QueryEscape(path)) {
		check("the access events", e.Duration)
	}
}

type accessEvent struct {
	Path     string        `json:"path"`
	Duration time.Duration `json:"duration_ns"`
}

// access waits for the access events of a search.
func (l *clocks) access(query string) (items []accessEvent) {
	l.t.Helper()
	cookie := l.signInToConsole()
	await(l.t, "access events with "+query, func() error {
		var page struct {
			Data struct {
				Items []accessEvent `json:"items"`
			} `json:"data"`
		}
		text := l.ask("http://"+l.relay.console+"/api/v1/access?"+query, cookie)
		decode(l.t, text, &page)
		if items = page.Data.Items; len(items) == 0 {
			return fmt.Errorf("none: %s", text)
		}
		return nil
	})
	return items
}

// udpFlow is a visitor of a service that answers with where it was asked from.
type udpFlow struct {
	t    *testing.T
	conn net.Conn
}

func startFlow(t *testing.T, addr string) *udpFlow {
	t.Helper()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &udpFlow{t, conn}
}

func (f *udpFlow) stop() { f.conn.Close() }

// answer is where the service says that it was asked from. It is asked again if
// a packet was lost.
func (f *udpFlow) answer() string {
	f.t.Helper()
	var text string
	await(f.t, "the udp tunnel answers", func() error {
		if _, err := f.conn.Write([]byte("a question as long as the answer is")); err != nil {
			return err
		}
		f.conn.SetReadDeadline(time.Now().Add(time.Second))
		b := make([]byte, 100)
		n, err := f.conn.Read(b)
		text = string(b[:n])
		return err
	})
	return text
}

// TestWhatEndsByTheClock sets the clock where certificates and sign-ins have
// ended, and right again.
func TestWhatEndsByTheClock(t *testing.T) {
	require.Opted(t)
	l := newClocksWith(t, "")
	l.agent.configure(l.relay.client("laptop"))
	site := l.agent.publish("https", newOrigin(t), map[string]any{"domain": "site"})
	right := func() *http.Client { // with a handshake for each request
		client := l.relay.visitor()
		transport := client.Transport.(*http.Transport)
		transport.TLSClientConfig.Time, transport.DisableKeepAlives = nil, true
		return client
	}()
	there := func() *http.Client {
		client := l.relay.visitor()
		client.Transport.(*http.Transport).DisableKeepAlives = true
		return client
	}()
	console, page := l.signInToConsole(), l.signInToWebUI()
	signedIn := func(wantConsole, wantPage int) {
		t.Helper()
		for _, c := range []struct {
			url    string
			cookie *http.Cookie
			want   int
		}{{"http://" + l.relay.console + "/api/v1/clients", console, wantConsole}, {"http://" + l.agent.listen + "/api/v1/status", page, wantPage}} {
			resp, text := send(t, "GET", c.url, "", http.Header{"Cookie": {c.cookie.Name + "=" + c.cookie.Value}})
			if resp.StatusCode != c.want {
				t.Errorf("clocks at %v and %v: %s: got %s %s, want %d", l.here.moved(), l.far.moved(), c.url, resp.Status, text, c.want)
			}
		}
	}
	refused := func(client *http.Client, why string) {
		t.Helper()
		if code, _, err := fetch(client, site.PublicURL); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the relay's clock at %v: got %d, %v; want %q", l.far.moved(), code, err, why)
		}
	}
	served := func(clients ...*http.Client) {
		t.Helper()
		for _, client := range clients {
			await(t, fmt.Sprintf("a visitor is served, the relay's clock at %v", l.far.moved()), answers(client, site.PublicURL+"/served"))
		}
	}
	served(right, there)
	signedIn(http.StatusOK, http.StatusOK)
	before := len(l.access("since=" + url.QueryEscape(l.far.now().Add(-5*time.Minute).UTC().Format(time.RFC3339)) + "&path=/served"))

	const day = 24 * time.Hour
	l.set(10*day, 10*day)
	served(right, there) // the certificate has twenty days more
	signedIn(http.StatusUnauthorized, http.StatusUnauthorized)
	l.set(40*day, 40*day)
	served(there)
	refused(right, "not yet valid")
	l.set(4000*day, 4000*day)
	refused(there, "expired") // the authority itself
	l.set(-4000*day, -4000*day)
	served(right)
	l.set(-60*day, -60*day)
	served(right)
	l.set(0, 0)
	served(right, there)
	signedIn(http.StatusOK, http.StatusOK)
	since := l.far.now().Add(-5 * time.Minute).UTC().Format(time.RFC3339)
	await(t, "what was before and after the wrong clock is found", func() error {
		if n := len(l.access("since=" + url.QueryEscape(since) + "&path=/served")); n < before+2 {
			return fmt.Errorf("%d requests, want %d", n, before+2)
		}
		return nil
	})
	if s := l.agent.status(); !s.Connected {
		t.Errorf("status %+v", s)
	}
}
