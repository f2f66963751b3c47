package relay

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestDrainWaitsForNobodyIdle has visitors that have asked for nothing, or are
// answered, each of whom once held the drain up for seconds or to its limit.
func TestDrainWaitsForNobodyIdle(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.HeaderTime = "50s" // it is not the limit that ends them
	r := startRelayDraining(t, cfg, 55*time.Second)
	a := connect(t, r.client(t, "shop"), "i1")
	origin := startOrigin(t, text("hello"))
	plain := a.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, origin)
	secure := a.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, origin)
	a.mustClaim("tls", wire.Claim{Type: wire.TypeTLS, Domain: "pass"}, origin)
	// The agent takes this tunnel's streams and never answers.
	deaf := a.mustClaim("deaf", wire.Claim{Type: wire.TypeTCP}, originDeaf)
	udp := a.mustClaim("udp", wire.Claim{Type: wire.TypeUDP}, "echo")

	dial := func(network, addr, first string) net.Conn {
		c, err := net.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, first)
		return c
	}
	addrs := r.Addrs()
	dial("tcp", addrs.HTTP, "")
	dial("tcp", addrs.HTTP, "\x00\x01garbage without an end")
	dial("tcp", addrs.HTTP, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n")
	dial("tcp", addrs.HTTPS, "")
	dial("tcp", addrs.HTTPS, "\x16\x03\x01\x02\x00\x01")
	dial("tcp", hostOf(t, deaf.PublicURL), "")
	dial("tcp", hostOf(t, deaf.PublicURL), "bytes that nobody takes")
	dial("udp", hostOf(t, udp.PublicURL), "packet")
	handshaken := tls.Client(dial("tcp", addrs.HTTPS, ""), &tls.Config{InsecureSkipVerify: true, ServerName: "shop.relay.test"})
	if err := handshaken.Handshake(); err != nil {
		t.Fatal(err)
	}
	kept := dial("tcp", addrs.HTTP, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(kept), nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	v := r.visitor(t) // by HTTP/2 where it is https
	for _, g := range []wire.Grant{plain, secure} {
		if status, body := get(t, v, g.PublicURL); status != 200 || body != "hello" {
			t.Fatalf("%s: %d %q", g.PublicURL, status, body)
		}
	}
	eventually(t, "the agent has the streams that it does not answer", func() bool { return a.deaf.Load() == 2 })
	start := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the relay ended after %v", took)
	} else {
		t.Logf("the relay ended after %v", took)
	}
}

// TestDrainLetsStreamsFinish keeps a tcp visitor who was silent, and a WebSocket.
func TestDrainLetsStreamsFinish(t *testing.T) {
	var log lockedBuffer
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), Drain: 50 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
	a := connect(t, r.client(t, "shop"), "i1")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan struct{})
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		close(accepted)
		io.Copy(c, c)
	}()
	g := a.mustClaim("tcp", wire.Claim{Type: wire.TypeTCP}, ln.Addr().String())
	c, err := net.Dial("tcp", hostOf(t, g.PublicURL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-accepted
	next := lines(c)
	say := func(text string) {
		t.Helper()
		fmt.Fprintln(c, text)
		c.SetReadDeadline(time.Now().Add(patience))
		if got, err := next(); err != nil || got != text+"\n" {
			t.Fatalf("got %q, %v, want %q", got, err, text)
		}
	}
	say("before")
	done := make(chan error, 1)
	go func() { done <- r.stop() }()
	a.event(wire.EventDrain)
	eventually(t, "new visitors are turned away", func() bool {
		c, err := net.Dial("tcp", r.Addrs().HTTP)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	say("while the relay drains")
	eventually(t, "the log says what it waits for", func() bool {
		return strings.Contains(log.String(), `msg="relay ends; visitors may finish" visitors=1 within=50s`)
	})
	c.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDrainingRelayGrantsNothing has an agent ask for tunnels while a visitor
// keeps the relay from its end.
func TestDrainingRelayGrantsNothing(t *testing.T) {
	r := startRelayDraining(t, testConfig(t.TempDir()), 50*time.Second)
	a := connect(t, r.client(t, "shop"), "i1")
	begun, finish := make(chan struct{}), make(chan struct{})
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-finish
	})))
	result := make(chan error, 1)
	go func() {
		resp, err := r.visitor(t).Get(g.PublicURL)
		if err == nil {
			resp.Body.Close()
		}
		result <- err
	}()
	select {
	case <-begun:
	case err := <-result:
		t.Fatalf("the request ended early: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- r.stop() }()
	a.event(wire.EventDrain)
	for _, kind := range []string{wire.TypeHTTP, wire.TypeTCP, wire.TypeUDP} {
		_, err := a.claim("late-"+kind, wire.Claim{Type: kind}, "")
		problem(t, err, wire.CodeUnavailable)
	}
	if claims := r.store.Claims.List(); len(claims) != 1 {
		t.Errorf("got the claims %+v, want that of before", claims)
	}
	close(finish)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
