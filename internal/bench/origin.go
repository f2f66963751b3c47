package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
)

// origin is the local service that is published: HTTP with bodies of any size
// both ways, and a UDP echo.
type origin struct {
	httpAddr, udpAddr string
	server            *http.Server
	udp               *net.UDPConn
}

var block = make([]byte, 1<<20)

func startOrigin() (*origin, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello, visitor") })
	mux.HandleFunc("/down", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.ParseInt(r.FormValue("size"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		for size > 0 {
			n, err := w.Write(block[:min(size, int64(len(block)))])
			if err != nil {
				return
			}
			size -= int64(n)
		}
	})
	mux.HandleFunc("/up", func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 256<<10)
		var total int64
		for {
			n, err := r.Body.Read(buffer)
			total += int64(n)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
		}
		io.WriteString(w, strconv.FormatInt(total, 10))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		l.Close()
		return nil, err
	}
	udp.SetReadBuffer(8 << 20)
	go func() {
		buffer := make([]byte, 65535)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			udp.WriteToUDPAddrPort(buffer[:n], from)
		}
	}()
	o := &origin{httpAddr: l.Addr().String(), udpAddr: udp.LocalAddr().String(), server: &http.Server{Handler: mux}, udp: udp}
	go o.server.Serve(l)
	return o, nil
}

func (o *origin) close() {
	o.server.Close()
	o.udp.Close()
}
