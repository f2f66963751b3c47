package sink

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/wire"
)

const patience = 30 * time.Second

func access(path string) Event {
	return Event{Type: Access, Access: &wire.Access{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Endpoint: "ep_1", Visitor: "203.0.113.9", User: "ann@example.com", Method: "GET", Host: "a.example", Path: path, Status: 403, Refused: "deny",
	}}
}

func start(t *testing.T, o Options) *Sink { return startWith(t, o, time.Millisecond) }

func startWith(t *testing.T, o Options, pause time.Duration) *Sink {
	t.Helper()
	o.Private = true
	if err := o.Config.check(true); err != nil {
		t.Fatal(err)
	}
	s := New(o)
	s.pause = pause
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}

func TestWebhookIsTriedUntilItIsTaken(t *testing.T) {
	var tries atomic.Int32
	taken := make(chan body, 10)
	var ids sync.Map // of deliveries
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids.Store(r.Header.Get("Adit-Delivery"), true)
		switch tries.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			panic(http.ErrAbortHandler)
		default:
			var b body
			if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
				t.Error(err)
			}
			taken <- b
		}
	}))
	defer hook.Close()
	s := start(t, Options{Name: "siem", Node: "n1", Config: Config{Type: Webhook, URL: hook.URL}})
	s.Add(access("/a"))
	s.Add(Event{Type: Audit, Audit: &audit.Entry{Action: "x"}}) // not wanted
	select {
	case b := <-taken:
		if b.Sink != "siem" || b.Node != "n1" || len(b.Events) != 1 || b.Events[0].Access.Path != "/a" {
			t.Errorf("got %+v", b)
		}
	case <-time.After(patience):
		t.Fatal("it was not taken")
	}
	eventually(t, "it counts as sent", func() bool { st := s.State(); return st.Sent == 1 && st.Failed == 3 && st.Dropped == 0 })
	ids.Delete("")
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("the tries of one delivery have %d ids: a receiver that took it twice cannot tell", n)
	}
}

// TestBatchesFitAReceiver has a web server that takes 1 MiB, as many do, and
// events of visitors who ask for long names.
func TestBatchesFitAReceiver(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1<<20)); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	}))
	defer hook.Close()
	s := start(t, Options{Config: Config{Type: Webhook, URL: hook.URL}})
	for range 400 {
		s.Add(access("/" + strings.Repeat("<", 2000)))
	}
	eventually(t, "all are taken", func() bool { st := s.State(); return st.Sent == 400 || st.Dropped > 0 })
	if st := s.State(); st.Dropped > 0 {
		t.Errorf("%d events were dropped: %s", st.Dropped, st.LastError)
	}
}

func TestRefusedDeliveryIsNotTriedAgain(t *testing.T) {
	var tries atomic.Int32
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	defer hook.Close()
	s := start(t, Options{Config: Config{Type: Webhook, URL: hook.URL}})
	s.Add(access("/a"))
	eventually(t, "it is dropped", func() bool { return s.State().Dropped == 1 })
	if n := tries.Load(); n != 1 {
		t.Errorf("%d tries", n)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var tries, led atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
	defer elsewhere.Close()
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer hook.Close()
	s := start(t, Options{Config: Config{Type: Webhook, URL: hook.URL}})
	s.Add(access("/a"))
	eventually(t, "it is sent", func() bool { return s.State().Sent == 1 })
	if tries.Load() != 2 || led.Load() != 0 {
		t.Errorf("%d tries, %d of them elsewhere", tries.Load(), led.Load())
	}
}

// TestWhatWaitsIsSentAsTheNewConfigurationSays changes a sink that waits for its
// next try: it is switched off, and on again elsewhere for fewer events.
func TestWhatWaitsIsSentAsTheNewConfigurationSays(t *testing.T) {
	refused := make(chan struct{}, 100)
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		refused <- struct{}{}
	}))
	defer old.Close()
	taken := make(chan body, 100)
	mended := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b body
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		taken <- b
	}))
	defer mended.Close()
	both := []string{Access, Audit}
	s := startWith(t, Options{Config: Config{Type: Webhook, URL: old.URL, Events: both}}, time.Hour)
	s.Add(Event{Type: Audit, Audit: &audit.Entry{Action: "x"}})
	s.Add(access("/first"))
	<-refused
	off := false
	s.Set(Config{Type: Webhook, URL: mended.URL, Events: both, Enabled: &off})
	eventually(t, "both wait", func() bool { return s.State().Queued == 2 })
	s.Add(access("/unwanted"))
	s.Set(Config{Type: Webhook, URL: mended.URL, Events: []string{Access}})
	s.Add(access("/second"))
	var got string
	for limit := time.After(patience); got != "/first /second"; {
		select {
		case b := <-taken:
			for _, e := range b.Events {
				if e.Access == nil {
					t.Fatalf("%+v was sent to a sink that does not want it", e)
				}
				got = strings.TrimSpace(got + " " + e.Access.Path)
			}
		case <-limit:
			t.Fatalf("got %q", got)
		}
	}
	eventually(t, "they count as sent", func() bool { return s.State().Sent == 2 })
	if st := s.State(); st.Queued != 0 || st.Dropped != 0 || st.LastError != "" {
		t.Errorf("got %+v", st)
	}
	select {
	case <-refused:
		t.Error("the old receiver was asked again")
	default:
	}
}

func TestQueueIsBounded(t *testing.T) {
	s := New(Options{Config: Config{Type: Webhook, URL: "http://127.0.0.1:1/", Events: []string{Access}}})
	defer s.Close()
	for i := range 3 * maxQueue {
		s.Add(access(strconv.Itoa(i)))
	}
	st := s.State()
	if st.Queued > maxQueue || st.Dropped+uint64(st.Queued) != 3*maxQueue {
		t.Errorf("got %+v", st)
	}
	if last := s.queue[len(s.queue)-1].Access.Path; last != strconv.Itoa(3*maxQueue-1) {
		t.Errorf("the newest is %s", last)
	}
}

// TestStrangersPushNothingElseOutOfTheQueue: they make as many access events as they like.
func TestStrangersPushNothingElseOutOfTheQueue(t *testing.T) {
	s := New(Options{Config: Config{Type: Webhook, URL: "http://127.0.0.1:1/", Events: []string{Access, Audit}}})
	defer s.Close()
	kept := func() (n int) {
		for _, e := range s.queue {
			if e.Audit != nil {
				n++
			}
		}
		return n
	}
	const entries = 100
	for i := range entries {
		s.Add(Event{Type: Audit, Audit: &audit.Entry{Seq: uint64(i + 1)}})
	}
	for i := range 3 * maxQueue {
		s.Add(access(strconv.Itoa(i)))
	}
	if n := kept(); n != entries {
		t.Errorf("%d of %d audit entries are left", n, entries)
	}
	for i := range 2 * maxQueue {
		s.Add(Event{Type: Audit, Audit: &audit.Entry{Seq: uint64(entries + i + 1)}})
	}
	st := s.State()
	if newest := s.queue[len(s.queue)-1].Audit; st.Queued > maxQueue || st.Dropped+uint64(st.Queued) != 5*maxQueue+entries || newest == nil || newest.Seq != entries+2*maxQueue {
		t.Errorf("got %+v, the newest %+v", st, newest)
	}
}

// message5424 is RFC 5424's grammar, as far as ours goes.
var message5424 = regexp.MustCompile(`^<(\d{1,3})>1 (\S+) (\S+) adit - (\S+) (-|\[adit@32473( [a-z_]+="([^"\\\]]|\\["\\\]])*")*\]) [^\x00-\x1f]*$`)

func TestSyslogMessages(t *testing.T) {
	s := newSyslog(Options{Node: "relay 1", Config: Config{Type: Syslog, Address: "udp://127.0.0.1:514"}})
	for _, e := range []Event{
		access("/plain"), access(`/"]\ x` + "\n<1>forged"), access("/é" + string([]byte{0xff})),
		{Type: Access, Access: &wire.Access{}},
		{Type: Audit, Audit: &audit.Entry{Seq: 3, Action: "client.add", Target: "shop\r\n", Detail: json.RawMessage(`{"a":"]"}`)}},
		{Type: Clients, Client: &Client{Client: "shop", State: Faulty, PublicURL: "https://a.example", Message: "dial \n\"]"}},
	} {
		text := string(s.message(e))
		if !message5424.MatchString(text) {
			t.Errorf("not a message: %q", text)
		}
	}
	// Neither a terminal is steered, nor is there a line that Unicode ends.
	if text := string(s.message(access("/a\u0085<1>b\u2028c\u2029d\u009b31me"))); strings.ContainsAny(text, "\u0085\u2028\u2029\u009b") || !strings.Contains(text, `path="/a <1>b c d 31me"`) {
		t.Errorf("lines and controls of Unicode: %q", text)
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	away := string(s.message(Event{Type: Clients, Client: &Client{Time: since.Add(time.Minute), State: Away, Client: "shop", ClientID: "c_1", Since: &since}}))
	if want := `<132>1 2026-01-02T03:05:05.000000Z relay1 adit - client [adit@32473 state="away" client="c_1" name="shop" since="2026-01-02T03:04:05Z"] shop away`; away != want {
		t.Errorf("got  %s\nwant %s", away, want)
	}
	text := string(s.message(access("/a")))
	for _, part := range []string{"<132>1 2026-01-02T03:04:05.000006Z relay1 adit - access ", ` visitor="203.0.113.9"`, ` user="ann@example.com"`, ` refused="deny"`, `] 203.0.113.9 GET a.example/a 403 deny`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

func TestSyslogByEachTransport(t *testing.T) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	s := start(t, Options{Config: Config{Type: Syslog, Address: "udp://" + packets.LocalAddr().String()}})
	s.Add(access("/udp"))
	buf := make([]byte, 4096)
	packets.SetReadDeadline(time.Now().Add(patience))
	n, _, err := packets.ReadFrom(buf)
	if err != nil || !message5424.Match(buf[:n]) {
		t.Errorf("udp: %q, %v", buf[:n], err)
	}

	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	s = start(t, Options{Config: Config{Type: Syslog, Address: "tcp://" + plain.Addr().String()}})
	s.Add(access("/tcp1"))
	s.Add(access("/tcp2"))
	conn := accept(t, plain)
	r := bufio.NewReader(conn)
	for _, want := range []string{"/tcp1", "/tcp2"} {
		if text, err := counted(r); err != nil || !message5424.MatchString(text) || !strings.Contains(text, want) {
			t.Errorf("tcp: %q, %v", text, err)
		}
	}
	conn.Close() // the receiver restarts: what comes then is not lost
	eventually(t, "an event after the break", func() bool {
		s.Add(access("/again"))
		plain.(*net.TCPListener).SetDeadline(time.Now().Add(3 * time.Second))
		c, err := plain.Accept()
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		text, err := counted(bufio.NewReader(c))
		return err == nil && strings.Contains(text, "/again")
	})
}

// TestSyslogOverTLS has a receiver that shows a certificate of its own authority,
// and one that nobody vouches for: nothing is sent to that.
func TestSyslogOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil) // for its certificate
	server.StartTLS()
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	address := "tls://" + ln.Addr().String()
	receive := func() (*tls.Conn, error) {
		c := tls.Server(accept(t, ln), &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12})
		return c, c.Handshake()
	}

	stranger := New(Options{Private: true, Config: Config{Type: Syslog, Address: address}})
	defer stranger.Close()
	refused := make(chan error, 1)
	go func() { refused <- stranger.Test(t.Context(), access("/secret")) }()
	if c, err := receive(); err == nil {
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("an event was sent to a receiver that nobody vouches for")
		}
	}
	var unknown x509.UnknownAuthorityError
	if err := <-refused; !errors.As(err, &unknown) {
		t.Errorf("got %v, want an error about the authority", err)
	}

	s := start(t, Options{Config: Config{Type: Syslog, Address: address, CA: ca}})
	s.Add(access("/first"))
	c, err := receive()
	if err != nil {
		t.Fatal(err)
	}
	text, err := counted(bufio.NewReader(c))
	if err != nil || !message5424.MatchString(text) || !strings.Contains(text, "/first") {
		t.Errorf("tls: %q, %v", text, err)
	}
	eventually(t, "it counts as sent", func() bool { st := s.State(); return st.Sent == 1 && st.Dropped == 0 })
}

func accept(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// counted reads a message with its length in front (RFC 6587, section 3.4.1).
func counted(r *bufio.Reader) (string, error) {
	var n int
	if _, err := fmt.Fscanf(r, "%d ", &n); err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"203.0.113.1": true, "2001:4860::1": true, "8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "10.1.1.1": false, "172.16.0.1": false, "192.168.0.1": false, "169.254.169.254": false,
		"fe80::1": false, "fd00:ec2::254": false, "0.0.0.0": false, "::": false, "224.0.0.1": false, "100.64.0.1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "255.255.255.255": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// TestNameThatLeadsToAPrivateAddressIsNotDialled is about what the check of a
// URL cannot know.
func TestNameThatLeadsToAPrivateAddressIsNotDialled(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := dialer(false).DialContext(t.Context(), "tcp", ln.Addr().String()); !errors.Is(err, errPrivate) {
		t.Errorf("got %v", err)
	}
	c, err := dialer(true).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestSinksThatAreRefused(t *testing.T) {
	for doc, field := range map[string]string{
		``:                                   "sink",
		`{"type":"mail"}`:                    "type",
		`{"typ":"webhook"}`:                  "typ",
		`{"type":1}`:                         "type",
		`{"type":"webhook","url":"ftp://a"}`: "url",
		`{"type":"webhook","url":"https://u:p@a.example/"}`:                      "url",
		`{"type":"webhook","url":"http://127.0.0.1/"}`:                           "url",
		`{"type":"webhook","url":"https://a.example/","events":["x"]}`:           "events[0]",
		`{"type":"syslog","address":"udp://a.example"}`:                          "address",
		`{"type":"syslog","address":"tcp://a.example:1","ca":"x"}`:               "ca",
		`{"type":"syslog","address":"tls://a.example:1","ca":"x"}`:               "ca",
		`{"type":"syslog","address":"tcp://a.example:1","facility":24}`:          "facility",
		`{"type":"syslog","address":"tcp://a.example:1","url":"https://b.test"}`: "url",
	} {
		_, err := Parse([]byte(doc), false)
		var f *FieldError
		if !errors.As(err, &f) || f.Field != field {
			t.Errorf("%s: got %v, want a fault of %s", doc, err, field)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"webhook","url":"https://a.example/x","secret":"s"}`))
	f.Add([]byte(`{"type":"syslog","address":"tls://a.example:6514","facility":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b, false)
		if err != nil {
			return
		}
		New(Options{Config: c}).Close()
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text, false); err != nil {
			t.Errorf("%s does not parse again: %v", text, err)
		}
	})
}
