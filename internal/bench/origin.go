package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// origin is the local service that is published: just enough HTTP to answer
// small requests and move bodies of any size both ways, and a UDP echo. It and
// the visitors share the processors with what is measured, so they do as little
// as they can.
type origin struct {
	httpAddr, udpAddr string
	received          atomic.Int64 // bytes of bodies
	listener          net.Listener
	udp               *net.UDPConn
	wg                sync.WaitGroup
}

var (
	block       = make([]byte, 1<<20)
	smallAnswer = answerOf("hello, visitor")
	kibAnswer   = answerOf(strings.Repeat("k", 1024))
)

func answerOf(body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// startOrigin starts one that listens on bind.
func startOrigin(bind string) (*origin, error) {
	l, err := net.Listen("tcp4", bind+":0")
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(bind)})
	if err != nil {
		l.Close()
		return nil, err
	}
	udp.SetReadBuffer(8 << 20)
	o := &origin{httpAddr: l.Addr().String(), udpAddr: udp.LocalAddr().String(), listener: l, udp: udp}
	o.wg.Go(func() {
		buffer := make([]byte, 65535)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			udp.WriteToUDPAddrPort(buffer[:n], from)
		}
	})
	o.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	})
	return o, nil
}

// serve answers the requests of one connection.
func (o *origin) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 4<<10)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		method, rest, _ := bytes.Cut(line, []byte(" "))
		target, _, _ := bytes.Cut(rest, []byte(" "))
		post, path := string(method) == "POST", string(target)
		var length int64
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= 2 {
				break
			}
			if name, value, _ := bytes.Cut(line, []byte(":")); post && strings.EqualFold(string(name), "Content-Length") {
				length, _ = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			}
		}
		switch size, down := strings.CutPrefix(path, "/down?size="); {
		case post:
			if !o.discard(r, length) {
				return
			}
			_, err = conn.Write(smallAnswer)
		case down:
			n, _ := strconv.ParseInt(size, 10, 64)
			err = send(conn, n)
		case path == "/kib":
			_, err = conn.Write(kibAnswer)
		default:
			_, err = conn.Write(smallAnswer)
		}
		if err != nil {
			return
		}
	}
}

func send(conn net.Conn, size int64) error {
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		return err
	}
	for size > 0 {
		n, err := conn.Write(block[:min(size, int64(len(block)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

func (o *origin) discard(r *bufio.Reader, length int64) bool {
	buffer := make([]byte, 256<<10)
	for length > 0 {
		n, err := r.Read(buffer[:min(length, int64(len(buffer)))])
		if err != nil && err != io.EOF || n == 0 {
			return false
		}
		length -= int64(n)
		o.received.Add(int64(n))
	}
	return true
}

func (o *origin) close() {
	o.listener.Close()
	o.udp.Close()
	o.wg.Wait()
}

// movedTo has visitors find an origin that listens on every address at one.
func (o *origin) movedTo(host string) {
	for _, addr := range []*string{&o.httpAddr, &o.udpAddr} {
		_, port, _ := net.SplitHostPort(*addr)
		*addr = net.JoinHostPort(host, port)
	}
}
