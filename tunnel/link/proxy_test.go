package link

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

// testProxy serves connections by handle, which says where to go on.
func testProxy(t *testing.T, handle func(c net.Conn, br *bufio.Reader) (target string, err error)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		br := bufio.NewReader(conn)
		target, err := handle(conn, br)
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", target)
		if err != nil {
			t.Errorf("proxy: %v", err)
			return
		}
		defer out.Close()
		go func() { io.Copy(out, br); out.Close() }()
		io.Copy(conn, out)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

func httpConnect(want string) func(net.Conn, *bufio.Reader) (string, error) {
	return func(c net.Conn, br *bufio.Reader) (string, error) {
		r, err := http.ReadRequest(br)
		if err != nil {
			return "", err
		}
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != want {
			io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
			return "", errors.New("refused")
		}
		_, err = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		return r.Host, err
	}
}

// socks5 speaks as much of RFC 1928 and RFC 1929 as a client with a password asks.
func socks5(user, password string) func(net.Conn, *bufio.Reader) (string, error) {
	return func(c net.Conn, br *bufio.Reader) (string, error) {
		read := func(n int) []byte {
			b := make([]byte, n)
			io.ReadFull(br, b)
			return b
		}
		head := read(2)
		read(int(head[1]))
		c.Write([]byte{5, 2})
		gotUser := string(read(int(read(2)[1])))
		gotPassword := string(read(int(read(1)[0])))
		if gotUser != user || gotPassword != password {
			c.Write([]byte{1, 1})
			return "", errors.New("refused")
		}
		c.Write([]byte{1, 0})
		request := read(4)
		var host string
		switch request[3] {
		case 1:
			host = net.IP(read(4)).String()
		case 3:
			host = string(read(int(read(1)[0])))
		}
		port := binary.BigEndian.Uint16(read(2))
		_, err := c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		return (&net.TCPAddr{IP: net.ParseIP(host), Port: int(port)}).String(), err
	}
}

func TestDialThroughProxy(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret"))
	tests := []struct {
		name   string
		handle func(net.Conn, *bufio.Reader) (string, error)
		scheme string
		user   *url.Userinfo
		ok     bool
	}{
		{"connect", httpConnect(""), "http", nil, true},
		{"connect with password", httpConnect(basic), "http", url.UserPassword("me", "secret"), true},
		{"connect with a wrong password", httpConnect(basic), "http", url.UserPassword("me", "wrong"), false},
		{"socks5", socks5("me", "secret"), "socks5", url.UserPassword("me", "secret"), true},
		{"socks5 with a wrong password", socks5("me", "secret"), "socks5", url.UserPassword("me", "wrong"), false},
		{"an unknown scheme", socks5("me", "secret"), "gopher", nil, false},
		{"an answer without end", func(c net.Conn, _ *bufio.Reader) (string, error) {
			for {
				if _, err := io.WriteString(c, strings.Repeat("HTTP/1.1 200 OK", 100)); err != nil {
					return "", err
				}
			}
		}, "http", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, fingerprint := testListener(t, ListenConfig{})
			defer l.Close()
			via := &url.URL{Scheme: test.scheme, User: test.user, Host: testProxy(t, test.handle)}
			session, err := Dial(testContext(t), DialConfig{
				Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: TLS,
				Proxy: func(string) (*url.URL, error) { return via, nil },
			})
			if !test.ok {
				if err == nil {
					session.Close("")
					t.Fatal("dialled")
				}
				if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "wrong") {
					t.Errorf("the password is in the error: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("dial: %v", err)
			}
			defer session.Close("over")
			server, err := l.Accept(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close("over")
			testEcho(t, pair{client: session, server: server})
		})
	}
}

// TestProxyThatIsNoAddress has settings that leave no proxy, and ones that were taken for
// a proxy named http.
// Many a proxy connects to port 443 alone.
func TestProxyToTheWebAlone(t *testing.T) {
	l, fingerprint := testListener(t, ListenConfig{})
	defer l.Close()
	proxy := testProxy(t, func(c net.Conn, br *bufio.Reader) (string, error) {
		r, err := http.ReadRequest(br)
		if err != nil {
			return "", err
		}
		if _, port, _ := net.SplitHostPort(r.Host); port != WebPort {
			io.WriteString(c, "HTTP/1.1 403 Forbidden\r\n\r\n")
			return "", errors.New("refused")
		}
		_, err = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		return l.Addr().String(), err
	})
	session, err := Dial(testContext(t), DialConfig{
		Relay: "relay.example:4433", Fingerprint: fingerprint, Transport: TLS,
		Proxy: func(string) (*url.URL, error) { return &url.URL{Scheme: "http", Host: proxy}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	session.Close("over")
}

func TestProxyThatIsNoAddress(t *testing.T) {
	for _, value := range []string{
		"http://proxy:port", "http://me:s3cret@pro xy:3128", "://", "http://", "http:/proxy.example:3128", "http//proxy.example", "%zz",
	} {
		for _, variable := range []string{"HTTPS_PROXY", "ALL_PROXY"} {
			https, all := value, ""
			if variable == "ALL_PROXY" {
				https, all = all, https
			}
			via, err := proxyFor(&httpproxy.Config{HTTPSProxy: https}, all, "relay.example:4433")
			var at *ProxyError
			if !errors.As(err, &at) || at.Proxy != "" || !strings.HasPrefix(at.Error(), variable+" is not an address") || strings.Contains(at.Error(), "s3cret") {
				t.Errorf("%s=%s: got %v, %v, want an error that names the variable alone", variable, value, via, err)
			}
			if via, err := proxyFor(&httpproxy.Config{HTTPSProxy: https, NoProxy: "relay.example"}, all, "relay.example:4433"); via != nil || err != nil {
				t.Errorf("%s=%s: got %v, %v for a relay without a proxy, want none", variable, value, via, err)
			}
		}
	}
}

func TestProxyFor(t *testing.T) {
	tests := []struct {
		name             string
		https, all, none string
		addr, want       string
	}{
		{"none", "", "", "", "relay.example:4433", ""},
		{"https", "http://a:1", "", "", "relay.example:4433", "http://a:1"},
		{"https before all", "http://a:1", "socks5://b:2", "", "relay.example:4433", "http://a:1"},
		{"all", "", "socks5://b:2", "", "relay.example:4433", "socks5://b:2"},
		{"no scheme", "a.example:1", "", "", "relay.example:4433", "http://a.example:1"},
		{"a name alone", "a", "", "", "relay.example:4433", "http://a"},
		{"a slash", "a:1/", "", "", "relay.example:4433", "http://a:1/"},
		{"exempt", "http://a:1", "", "relay.example", "relay.example:4433", ""},
		{"loopback", "http://a:1", "", "", "127.0.0.1:4433", ""},
	}
	for _, test := range tests {
		got, err := proxyFor(&httpproxy.Config{HTTPSProxy: test.https, NoProxy: test.none}, test.all, test.addr)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		text := ""
		if got != nil {
			text = got.String()
		}
		if text != test.want {
			t.Errorf("%s: got %q, want %q", test.name, text, test.want)
		}
	}
}
