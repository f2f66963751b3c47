package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// EnvironmentProxy returns the proxy that HTTPS_PROXY, ALL_PROXY and NO_PROXY set for addr
// (host:port), or nil for none.
func EnvironmentProxy(addr string) (*url.URL, error) {
	return proxyFor(httpproxy.FromEnvironment(), allProxy(), addr)
}

func proxyFor(cfg *httpproxy.Config, all, addr string) (*url.URL, error) {
	variable := "HTTPS_PROXY"
	if cfg.HTTPSProxy == "" {
		variable, cfg.HTTPSProxy = "ALL_PROXY", all
	}
	if cfg.HTTPSProxy == "" {
		return nil, nil
	}
	// The package ignores values that it cannot parse, and takes "http" for the host of
	// http://proxy:port.
	via, wrong := ParseProxy(cfg.HTTPSProxy)
	if wrong != nil {
		cfg.HTTPSProxy = "http://proxy.invalid"
	}
	used, err := cfg.ProxyFunc()(&url.URL{Scheme: "https", Host: addr})
	switch {
	case err != nil || used == nil: // NO_PROXY
		return nil, err
	case wrong != nil:
		return nil, &ProxyError{Err: fmt.Errorf("%s is %w", variable, wrong)}
	}
	return via, nil
}

// ErrProxyAddress says that a proxy's address is invalid. It omits the address, which may contain a
// password.
var ErrProxyAddress = errors.New("not an address such as http://proxy.example:3128")

// ParseProxy parses a proxy address in the format of HTTPS_PROXY. Without a scheme, it is the
// address of an HTTP proxy.
func ParseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if (err != nil || u.Scheme == "" || u.Host == "") && !strings.Contains(text, "://") {
		u, err = url.Parse("http://" + text)
		if err == nil && u.Path != "" && u.Path != "/" {
			return nil, ErrProxyAddress // as http:/proxy
		}
	}
	if err != nil || u.Hostname() == "" {
		return nil, ErrProxyAddress
	}
	return u, nil
}

// ProxyError says why a relay cannot be reached through a proxy.
type ProxyError struct {
	Proxy string // its host and port; empty if what is set is no address
	Err   error
}

func (e *ProxyError) Error() string {
	if e.Proxy == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("dial through proxy %s: %v", e.Proxy, e.Err)
}

// Unwrap returns the reason.
func (e *ProxyError) Unwrap() error { return e.Err }

// proxyDial connects to addr through the proxy at via.
func proxyDial(ctx context.Context, dial dialFunc, via *url.URL, addr string) (net.Conn, error) {
	conn, err := dialVia(ctx, dial, via, addr)
	if err != nil {
		return nil, &ProxyError{Proxy: via.Host, Err: err}
	}
	return conn, nil
}

func dialVia(ctx context.Context, dial dialFunc, via *url.URL, addr string) (net.Conn, error) {
	switch via.Scheme {
	case "http", "https":
		return connectDial(ctx, dial, via, addr)
	case "socks5", "socks5h":
		var auth *proxy.Auth
		if via.User != nil {
			password, _ := via.User.Password()
			auth = &proxy.Auth{User: via.User.Username(), Password: password}
		}
		dialer, err := proxy.SOCKS5("tcp", hostPort(via, "1080"), auth, dial)
		if err != nil {
			return nil, err
		}
		return dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", addr)
	}
	return nil, fmt.Errorf("%q is not http, https or socks5", via.Scheme)
}

// dialFunc is net.Dialer.DialContext; it also implements proxy.Dialer.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Dial is required by package proxy, which prefers DialContext.
func (d dialFunc) Dial(network, addr string) (net.Conn, error) {
	return d(context.Background(), network, addr)
}

// DialContext calls d.
func (d dialFunc) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

func hostPort(u *url.URL, port string) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// connectDial asks an HTTP proxy for a tunnel (RFC 9110 §9.3.6).
func connectDial(ctx context.Context, dial dialFunc, via *url.URL, addr string) (net.Conn, error) {
	port := "80"
	if via.Scheme == "https" {
		port = "443"
	}
	conn, err := dial(ctx, "tcp", hostPort(via, port))
	if err != nil {
		return nil, err
	}
	raw := conn
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if via.Scheme == "https" {
		conn = newSecuredProxy(conn, &tls.Config{ServerName: via.Hostname()})
	}
	tunnel, err := askConnect(conn, via, addr)
	if err != nil {
		raw.Close()
		return nil, err
	}
	return tunnel, nil
}

func askConnect(conn net.Conn, via *url.URL, addr string) (net.Conn, error) {
	request := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: addr},
		Host:   addr,
		Header: http.Header{},
	}
	if via.User != nil {
		password, _ := via.User.Password()
		secret := base64.StdEncoding.EncodeToString([]byte(via.User.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+secret)
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	// Cut off a proxy that answers without end.
	limited := &limitedConn{Conn: conn, left: 64 << 10}
	br := bufio.NewReader(limited)
	response, err := http.ReadResponse(br, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	if br.Buffered() > 0 {
		return nil, errors.New("it sent more than its answer")
	}
	return conn, nil
}

// securedProxy is a TLS connection to a proxy.
type securedProxy struct {
	*tls.Conn
	raw net.Conn
}

func newSecuredProxy(raw net.Conn, config *tls.Config) *securedProxy {
	return &securedProxy{tls.Client(raw, config), raw}
}

// Close closes the connection below immediately, for the same reason as batchConn.Close.
func (c *securedProxy) Close() error { return c.raw.Close() }

// limitedConn reads a bounded number of bytes.
type limitedConn struct {
	net.Conn
	left int
}

func (c *limitedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("its answer is too long")
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
