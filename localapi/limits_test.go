package localapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
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
		"byte order mark":    "\ufeff{}",
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
