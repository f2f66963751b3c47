package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"adit/internal/require"
)

// client is an HTTP client on a host, which dials addr whatever the URL says.
func (h *hosts) client(host, addr string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		onErr := inSpace(h.spaces[host], func() error {
			conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
			return err
		})
		return conn, onErr
	}}
	h.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// away is a daemon behind the router, with a relay on the public side.
type away struct {
	*hosts
	local   *http.Client // on the daemon's host
	visitor *http.Client // of the edge's HTTP port
	token   string
}

// newAway starts relay and daemon, which is not configured yet.
func newAway(t *testing.T) *away {
	t.Helper()
	a := &away{hosts: newHosts(t)}
	data, state := t.TempDir(), t.TempDir()
	launchIn(t, a.spaces["relay"], nil, "relay", "start", "--data_dir", data, "--domain", "tunnels.test", "--public_host", "198.51.100.1",
		"--tunnel_listen", ":4433", "--edge_http_listen", ":80", "--edge_https_listen", ":443", "--console_listen", "127.0.0.1:37280")
	console := a.client("relay", "127.0.0.1:37280")
	await(t, "the relay answers", func() error { return answersOK(console, "http://127.0.0.1:37280/healthz") })
	var added struct {
		AuthToken string `json:"auth_token"`
	}
	decode(t, a.in("relay", program, "relay", "client", "add", "home", "--json", "--data_dir", data), &added)
	a.token = added.AuthToken
	launchIn(t, a.spaces["agent"], []string{"ADIT_CONFIG_DIR=" + state, "ADIT_STATE_DIR=" + state}, "start")
	a.local = a.client("agent", "127.0.0.1:37271")
	a.visitor = a.client("visitor", "198.51.100.1:80")
	await(t, "the daemon answers", func() error { return answersOK(a.local, "http://127.0.0.1:37271/healthz") })
	return a
}

func answersOK(client *http.Client, url string) error {
	status, body, err := fetch(client, url)
	if err == nil && status != http.StatusOK {
		err = errorf("%d %s", status, body)
	}
	return err
}

// post sends a request to the daemon, which must succeed.
func (a *away) post(path, body string) {
	a.t.Helper()
	resp, err := a.local.Post("http://127.0.0.1:37271/api/v1/"+path, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		a.t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		a.t.Fatalf("%s: %d %s, %v", path, resp.StatusCode, text, err)
	}
}

// configure gives the daemon its token.
func (a *away) configure() {
	a.t.Helper()
	a.post("auth/configure", fmt.Sprintf(`{"auth_token":%q}`, a.token))
}

// transport is what the daemon says that it is connected over; empty if it is not.
func (a *away) transport() (string, error) {
	_, body, err := fetch(a.local, "http://127.0.0.1:37271/api/v1/status")
	if err != nil {
		return "", err
	}
	var answer struct{ Data status }
	decode(a.t, body, &answer)
	if !answer.Data.Connected {
		return "", nil
	}
	return answer.Data.Transport, nil
}

func (a *away) awaitTransport(want string) time.Duration {
	a.t.Helper()
	return await(a.t, "the daemon is connected over "+want, func() error {
		got, err := a.transport()
		if err == nil && got != want {
			err = errorf("it is connected over %q", got)
		}
		return err
	})
}

// filter puts a rule on what the router forwards; an empty one lets all through.
func (a *away) filter(rule string) {
	a.t.Helper()
	text := "table inet cut\ndelete table inet cut\n"
	if rule != "" {
		text += "table inet cut { chain forward { type filter hook forward priority -10\n" + rule + "\n}\n}\n"
	}
	a.in("router", "sh", "-c", "printf %s '"+text+"' | nft -f -")
}

// narrow makes the router's links take packets of 628 bytes at most. (A filter by
// length would see, and drop, what the hosts leave to be cut into segments.)
func (a *away) narrow() {
	a.t.Helper()
	for _, link := range []string{"home", "up0"} {
		tool(a.t, a.ip, "-n", a.spaces["router"], "link", "set", link, "mtu", "628")
	}
}

// publish serves handler on the daemon's host under name.tunnels.test.
func (a *away) publish(name string, handler http.Handler) string {
	a.t.Helper()
	var listener net.Listener
	err := inSpace(a.spaces["agent"], func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		require.Missing(a.t, "a socket on another host: %v", err)
	}
	server := &http.Server{Handler: handler}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(listener) })
	a.t.Cleanup(func() { server.Close(); serving.Wait() })
	a.post("tunnels", fmt.Sprintf(`{"type":"http","mode":"standard","local_ip":"127.0.0.1","local_port":%d,"domain":%q}`,
		listener.Addr().(*net.TCPAddr).Port, name))
	return "http://" + name + ".tunnels.test/"
}

// source serves ?n= random bytes, at a rate that lets a test do something
// meanwhile, and under /tick a line every 50 ms until the visitor goes.
func source(rate int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.ParseInt(r.FormValue("n"), 10, 64)
		random, piece, began := content(), make([]byte, 64<<10), time.Now()
		for sent := int64(0); sent < size; {
			n := min(size-sent, int64(len(piece)))
			random.Read(piece[:n])
			if _, err := w.Write(piece[:n]); err != nil {
				return
			}
			sent += n
			time.Sleep(time.Until(began.Add(time.Duration(sent) * time.Second / time.Duration(rate))))
		}
	})
	mux.HandleFunc("/tick", func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			fmt.Fprintln(w, i)
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	})
	return mux
}

func content() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{'a', 'd', 'i', 't'}) }

// download gets size bytes, calls at with how many there are, and returns the
// longest pause. What came must be whole.
func (a *away) download(url string, size int64, at func(got int64)) time.Duration {
	a.t.Helper()
	resp, err := a.visitor.Get(fmt.Sprintf("%s?n=%d", url, size))
	if err != nil {
		a.t.Fatalf("download: %v", err)
	}
	defer resp.Body.Close()
	want, got := sha256.New(), sha256.New()
	io.CopyN(want, content(), size)
	var n int64
	var pause time.Duration
	last, buf := time.Now(), make([]byte, 64<<10)
	for {
		k, err := resp.Body.Read(buf)
		pause = max(pause, time.Since(last))
		got.Write(buf[:k])
		n += int64(k)
		at(n)
		last = time.Now()
		if err == io.EOF {
			break
		}
		if err != nil {
			a.t.Fatalf("download: after %d bytes: %v", n, err)
		}
	}
	if n != size || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		a.t.Errorf("got %d bytes, want %d with the same SHA-256", n, size)
	}
	return pause
}

// once calls f when it is first asked with at least bound.
func once(bound int64, f func()) func(int64) {
	done := false
	return func(n int64) {
		if !done && n >= bound {
			done = true
			f()
		}
	}
}

// slack is how long what is promised in seconds may take where other work
// shares the machine; what it took is printed.
const slack = 15 * time.Second

// TestDownloadOutlivesUDP cuts UDP off in the middle of a visitor's download,
// and opens it again later.
func TestDownloadOutlivesUDP(t *testing.T) {
	require.Tool(t, "nft")
	a := newAway(t)
	a.configure()
	a.awaitTransport("dtls")
	const rate, size = 25 << 20, 300 << 20
	url := a.publish("files", source(rate))
	await(t, "the tunnel answers", func() error { return answersOK(a.visitor, url+"?n=10") })

	// A second visitor, who sees a line now and then all the time.
	resp, err := a.visitor.Get(url + "tick")
	if err != nil {
		t.Fatal(err)
	}
	var ticks int
	var ticksErr error
	var watching sync.WaitGroup
	ended := make(chan struct{})
	watching.Go(func() {
		defer close(ended)
		lines := bufio.NewScanner(resp.Body)
		for ; lines.Scan(); ticks++ {
			if lines.Text() != strconv.Itoa(ticks) {
				ticksErr = errorf("got line %q, want %d", lines.Text(), ticks)
				return
			}
		}
		ticksErr = lines.Err()
	})

	var during string
	cut := once(size/4, func() { a.filter("meta l4proto udp drop") })
	look := once(size*7/8, func() { during, _ = a.transport() })
	pause := a.download(url, size, func(n int64) { cut(n); look(n) })
	t.Logf("UDP cut in a download of %d MiB: longest pause %v, then over %q", size>>20, pause.Round(time.Millisecond), during)
	if pause > slack {
		t.Errorf("the visitor waited for %v, want at most 5s (and slack)", pause)
	}
	if during != "tls" {
		t.Errorf("after the cut it is connected over %q, want tls", during)
	}

	a.filter("")
	back := a.awaitTransport("dtls")
	t.Logf("UDP open again: back on dtls after %v", back.Round(time.Millisecond))
	pause = a.download(url, 10<<20, func(int64) {})
	t.Logf("longest pause after the return %v", pause.Round(time.Millisecond))

	// And only packets of 628 bytes get through: datagrams of 600.
	a.narrow()
	pause = a.download(url, 10<<20, func(int64) {})
	got, err := a.transport()
	t.Logf("only small datagrams pass: longest pause %v, over %q, %v", pause.Round(time.Millisecond), got, err)
	if pause > slack {
		t.Errorf("the visitor waited for %v, want at most 5s (and slack)", pause)
	}
	select {
	case <-ended:
		t.Errorf("the other visitor got %d lines and then: %v", ticks, ticksErr)
	default:
	}
	resp.Body.Close()
	watching.Wait()
	if ticks == 0 {
		t.Errorf("the other visitor got nothing: %v", ticksErr)
	}
}

// TestUDPBlockedFromTheStart begins where no datagram gets through, and then
// where only small ones do.
func TestUDPBlockedFromTheStart(t *testing.T) {
	require.Tool(t, "nft")
	a := newAway(t)
	a.filter("meta l4proto udp drop")
	began := time.Now()
	a.configure()
	a.awaitTransport("tls")
	took := time.Since(began)
	t.Logf("UDP blocked: connected over tls after %v", took.Round(time.Millisecond))
	if took > slack {
		t.Errorf("it took %v, want 2s (and slack)", took)
	}
	url := a.publish("files", source(50<<20))
	await(t, "the tunnel answers", func() error { return answersOK(a.visitor, url+"?n=10") })
	// The visitor's download goes on where it began, while the agent moves.
	var back time.Duration
	open := once(1<<20, func() {
		a.filter("")
		back = a.awaitTransport("dtls")
	})
	a.download(url, 20<<20, open)
	t.Logf("UDP opened: on dtls after %v", back.Round(time.Millisecond))

	a.narrow()
	began = time.Now()
	a.post("reconnect", "{}")
	pause := a.download(url, 5<<20, func(int64) {})
	await(t, "the daemon is connected", func() error {
		got, err := a.transport()
		if err == nil && got == "" {
			err = errorf("it is not connected")
		}
		return err
	})
	got, _ := a.transport()
	t.Logf("only small datagrams pass: over %q after %v, longest pause of a visitor %v", got, time.Since(began).Round(time.Millisecond), pause.Round(time.Millisecond))
}
