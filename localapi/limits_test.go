package localapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeepAndBrokenJSONIsRefused(t *testing.T) {
	r := serve(t, nil)
	for name, body := range map[string]string{
		"deep lists":         strings.Repeat("[", 100_000),
		"deep objects":       strings.Repeat(`{"a":`, 100_000),
		"deep in a field":    `{"auth_token":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
		"braces in a string": `{"auth_token":"` + strings.Repeat("[", 4000),
		"NaN":                `{"auth_token":NaN}`,
		"comment":            `{"auth_token":"a"} // x`,
		"single quotes":      `{'auth_token':'a'}`,
		"blank":              "   ",
	} {
		resp, err := plainClient.Post(r.url+"/api/v1/auth/configure", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 400 || !strings.Contains(string(answer), "invalid_json") {
			t.Errorf("%s: got status %d and %s, want 400 invalid_json", name, resp.StatusCode, answer)
		}
	}
	fine := `{"auth_token":"` + strings.Repeat("[{", 4000) + `"}`
	if resp, err := plainClient.Post(r.url+"/api/v1/auth/configure", "application/json", strings.NewReader(fine)); err != nil || resp.StatusCode != 200 {
		t.Errorf("braces inside a string: got %v, %v, want 200", resp, err)
	}
}

func TestByteOrderMarkIsNamed(t *testing.T) {
	r := serve(t, nil)
	header := map[string]string{"Content-Type": "application/json"}
	resp, answer := r.do(t, "POST", "/api/v1/tunnels", "\ufeff"+`{"local_port":3000}`, header)
	if resp.StatusCode != 400 || !strings.Contains(answer, "invalid_json") || !strings.Contains(answer, "byte order mark") {
		t.Errorf("got %d %s, want it to say what is at the body's beginning", resp.StatusCode, answer)
	}
}

// TestHalfACharacterIsRefused: encoding/json makes another character of it, and the
// tunnel would have a name that nobody gave it.
func TestHalfACharacterIsRefused(t *testing.T) {
	r := serve(t, nil)
	for name, want := range map[string]int{
		`\ud83d`: 400, `\uD83D!`: 400, `\udc00`: 400, `\udc00\ud83d`: 400, `\ud83d\ud83d`: 400, `\ud83d\n`: 400, `\ud83d\\udc00`: 400, `a\\\ud83d`: 400,
		`\ud83d\ude00`: 201, `\\ud83d`: 201, `\u00e9`: 201, `\ufffd`: 201, `\"`: 201, `\\`: 201,
	} {
		body := `{"local_port":3000,"name":"` + name + `"}`
		resp, err := plainClient.Post(r.url+"/api/v1/tunnels", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || want == 400 && !strings.Contains(string(answer), "half of a character") {
			t.Errorf("a name of %s: got %d %s, want %d", name, resp.StatusCode, answer, want)
		}
	}
	header := map[string]string{"Content-Type": "application/json"}
	if resp, answer := r.do(t, "PUT", "/api/v1/tunnels/t_1/policy", `{"allow":["\ud83d"]}`, header); resp.StatusCode != 400 {
		t.Errorf("a policy with half of a character: got %d %s, want 400", resp.StatusCode, answer)
	}
}

func TestBodyWithoutALengthIsBounded(t *testing.T) {
	r := serve(t, nil)
	long := io.LimitReader(zeros{}, 3<<20)
	req, err := http.NewRequest("POST", r.url+"/api/v1/tunnels", long)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := plainClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("got status %d, want 413", resp.StatusCode)
	}
}

// TestLargeBodiesAreRefusedEverywhere: a body has its limit also where none is
// read, before the path and the method are looked at.
func TestLargeBodiesAreRefusedEverywhere(t *testing.T) {
	r := serve(t, nil)
	for _, size := range []int64{maxBody + 1, maxDrain + 1} {
		for _, c := range [][2]string{
			{"GET", "/api/v1/status"},
			{"DELETE", "/api/v1/requests"},
			{"PUT", "/api/v1/tunnels"},
			{"POST", "/api/v1/nothing"},
			{"POST", "/"},
			{"POST", "/api/v1/pause"},
			{"POST", "/api/v1/requests.har"},
		} {
			req, err := http.NewRequest(c[0], r.url+c[1], io.LimitReader(zeros{}, size))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = size
			req.Header.Set("Content-Type", "application/json")
			resp, err := plainClient.Do(req)
			if err != nil {
				t.Errorf("%s %s with %d bytes: %v", c[0], c[1], size, err)
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 413 || !strings.Contains(string(body), `"payload_too_large"`) {
				t.Errorf("%s %s with %d bytes: got %d %s, want 413", c[0], c[1], size, resp.StatusCode, body)
			}
		}
	}
}

// TestManyLargeBodiesHaveTheirTurn holds that whoever sends many bodies and ends
// none cannot have the daemon keep all of them in memory.
func TestManyLargeBodiesHaveTheirTurn(t *testing.T) {
	r := serve(t, nil)
	send := func(sent string, size int) net.Conn {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST /api/v1/tunnels HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", r.addr, size, sent); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	large := `{"local_port":3000` + strings.Repeat(" ", 2*smallBody) + `}`
	var begun []net.Conn
	for range maxLarge {
		begun = append(begun, send(large[:len(large)-1], len(large)))
	}
	for end := time.Now().Add(20 * time.Second); len(r.bodies) < maxLarge; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d large bodies are being read, want %d", len(r.bodies), maxLarge)
		}
	}
	waits := send(large, len(large))
	if resp, answer := r.do(t, "POST", "/api/v1/tunnels", `{"local_port":3000}`, map[string]string{"Content-Type": "application/json"}); resp.StatusCode != 201 {
		t.Errorf("a small body beside them: got %d %s, want 201", resp.StatusCode, answer)
	}
	if n := len(r.bodies); n != maxLarge {
		t.Errorf("%d large bodies are being read, want %d", n, maxLarge)
	}
	begun[0].Close()
	if resp, err := http.ReadResponse(bufio.NewReader(waits), nil); err != nil || resp.StatusCode != 201 {
		t.Errorf("the one that waits: got %v, %v, want 201", resp, err)
	}
	for _, c := range begun {
		c.Close()
	}
	for end := time.Now().Add(20 * time.Second); len(r.bodies) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d large bodies count as being read, want none", len(r.bodies))
		}
	}
}

func TestLargeBodyWaitsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := make(bodies, 1)
		full <- struct{}{}
		b := full.bound(io.NopCloser(strings.NewReader(strings.Repeat(" ", 2*smallBody))))
		defer b.release()
		got, err := io.ReadAll(b)
		if len(got) != smallBody || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %d bytes, %v, want %d and that the time is over", len(got), err, smallBody)
		}
	})
}

// TestConditionsThatNothingHeedsAreRefused: a change that was to be made on one
// condition alone must not be made without it (RFC 9110, section 13.1).
func TestConditionsThatNothingHeedsAreRefused(t *testing.T) {
	r := serve(t, nil)
	for _, c := range []struct {
		method, path, header, value, body string
		status                            int
	}{
		{"PATCH", "/api/v1/tunnels/t_1", "If-Match", `"x"`, `{"name":"b"}`, 400},
		{"DELETE", "/api/v1/tunnels/t_1", "If-Match", `"x"`, "", 400},
		{"POST", "/api/v1/tunnels", "If-None-Match", "*", `{"local_port":3000}`, 400},
		{"POST", "/api/v1/tunnels/t_1/stop", "If-Unmodified-Since", "Thu, 26 Nov 2026 17:00:00 GMT", "", 400},
		{"GET", "/api/v1/tunnels/t_1", "If-None-Match", `"x"`, "", 200},
		{"PUT", "/api/v1/tunnels/t_1/policy", "If-Match", `"x"`, "{}", 200},
		{"PATCH", "/api/v1/tunnels/t_1", "If-Range", `"x"`, `{"name":"b"}`, 200},
	} {
		header := map[string]string{c.header: c.value, "Content-Type": "application/json"}
		resp, answer := r.do(t, c.method, c.path, c.body, header)
		if resp.StatusCode != c.status || c.status == 400 && !strings.Contains(answer, `"field":"`+c.header+`"`) {
			t.Errorf("%s %s with %s: got %d %s, want %d", c.method, c.path, c.header, resp.StatusCode, answer, c.status)
		}
	}
}

// TestAllowNamesWhatIsAnswered: each method that a 405 names is not one itself.
func TestAllowNamesWhatIsAnswered(t *testing.T) {
	r := serve(t, nil)
	for _, path := range []string{"/healthz", "/metrics", "/api/v1/status", "/api/v1/pause", "/api/v1/tunnels", "/api/v1/events", "/"} {
		for _, method := range []string{"TRACE", "OPTIONS"} {
			resp, body := r.do(t, method, path, "", nil)
			allow := resp.Header.Get("Allow")
			if resp.StatusCode != 405 || allow == "" || strings.Contains(allow, method) {
				t.Errorf("%s %s: got %d, Allow %q, want 405 and the methods there are", method, path, resp.StatusCode, allow)
			}
			if !strings.Contains(body, "this path takes "+allow+`"`) {
				t.Errorf("%s %s: got %s, want the methods of Allow: %s", method, path, body, allow)
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestManySilentConnectionsKeepNobodyOut(t *testing.T) {
	r := serve(t, nil)
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for i := range maxConnections + 50 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if i%2 == 0 { // half of them begin a request and never end it
			fmt.Fprintf(c, "GET /api/v1/status HTTP/1.1\r\nHost: %s\r\nX-Slow: ", r.addr)
		}
		held = append(held, c)
	}
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := fresh.Get(r.url + "/api/v1/status")
	if err != nil {
		t.Fatalf("a plain request beside %d held connections: %v", len(held), err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("got status %d, want 200", resp.StatusCode)
	}
	if n := r.conns.open(); n > maxConnections {
		t.Errorf("got %d open connections, want at most %d", n, maxConnections)
	}
}

func TestSlowHeadersEnd(t *testing.T) {
	t.Parallel()
	r := serve(t, nil)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /api/v1/status HTTP/1.1\r\nHost: %s\r\nX-Slow: ", r.addr)
	if err := c.SetReadDeadline(time.Now().Add(6 * headerTimeout)); err != nil {
		t.Fatal(err)
	}
	// The server hangs up, with or without a word.
	if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
		t.Errorf("the connection was still open after %s", 6*headerTimeout)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	r := serve(t, nil)
	got, body := raw(t, r.addr, "GET /api/v1/status HTTP/1.1\r\nHost: "+r.addr+"\r\nX: "+strings.Repeat("a", maxHeader+8<<10)+"\r\nConnection: close\r\n\r\n")
	if got != 431 || !strings.Contains(body, `"code":"payload_too_large"`) {
		t.Errorf("got %d %s, want 431 payload_too_large", got, body)
	}
}

func TestARequestThatIsNoneIsRefusedInTheEnvelope(t *testing.T) {
	r := serve(t, nil)
	for _, text := range []string{
		"GET /api/v1/status HTTP/1.1\r\n\r\n",
		"GET /api/v1/%zz HTTP/1.1\r\nHost: " + r.addr + "\r\n\r\n",
	} {
		if got, body := raw(t, r.addr, text); got != 400 || !strings.HasPrefix(body, `{"error":{"code":"invalid_parameter"`) {
			t.Errorf("%q: got %d %s, want 400 invalid_parameter", text, got, body)
		}
	}
}

func FuzzDecodeStrict(f *testing.F) {
	for _, s := range []string{`{"local_port":1}`, `{"headers":[{"name":"a"}]}`, `{"a":`, `[]`, `{"body":"\ud800"}`, "{}\n{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		var v struct {
			Name    string            `json:"name"`
			Port    *int              `json:"local_port"`
			Headers []struct{ A int } `json:"headers"`
		}
		err := decodeStrict(b, &v)
		if err == nil {
			return
		}
		p := problemOf(err)
		if p.status != 400 || p.message == "" {
			t.Fatalf("%q: got %+v, want a refusal with status 400", b, p)
		}
	})
}
