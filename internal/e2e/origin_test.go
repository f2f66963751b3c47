package e2e

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// pattern is a stream of bytes without end that repeats only after 2^67.
type pattern struct{ at uint64 } // the next byte

// Read is not followed by the race detector, which would take longer over its
// bytes than all the rest of the way: it shares nothing with anybody.
//
//go:norace
func (p *pattern) Read(b []byte) (int, error) {
	var word [8]byte
	for n := 0; n < len(b); {
		x := p.at / 8 * 0x9E3779B97F4A7C15
		x ^= x >> 29
		if p.at%8 == 0 && len(b)-n >= 8 {
			binary.LittleEndian.PutUint64(b[n:], x)
			n, p.at = n+8, p.at+8
			continue
		}
		binary.LittleEndian.PutUint64(word[:], x)
		m := copy(b[n:], word[p.at%8:])
		n, p.at = n+m, p.at+uint64(m)
	}
	return len(b), nil
}

func patternSum(size int64) string {
	sum := sha256.New()
	io.CopyN(sum, &pattern{}, size)
	return hex.EncodeToString(sum.Sum(nil))
}

func hexSum(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// newOrigin is a local service with what real ones do:
//
//	/            a sentence with the Host and the forwarding headers
//	/file?size=N N bytes of the pattern
//	/upload      answers with the SHA-256 of the body
//	/sse?n=N     N events; each waits for the visitor to have asked for it at /next
//	/echo        a WebSocket that says back what it hears
//	/slow        one byte every 100 ms
func newOrigin(t *testing.T) (port int) {
	t.Helper()
	return newOriginOn(t, listenLoopback(t))
}

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newOriginOn(t *testing.T, l net.Listener) (port int) {
	t.Helper()
	next := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Origin", "yes")
		fmt.Fprintf(w, "host=%s for=%s proto=%s", r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"))
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.ParseInt(r.FormValue("size"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		io.CopyN(w, &pattern{}, size)
	})
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		io.WriteString(w, hexSum(sum))
	})
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		for i := range n {
			fmt.Fprintf(w, "data: %d\n\n", i)
			flush.Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case next <- struct{}{}:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1,
		})
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(1 << 20)
		for {
			kind, data, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if conn.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := w.Write([]byte{'.'}); err != nil {
				return
			}
			flush.Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// newEcho is a TCP service that says back what it hears.
func newEcho(t *testing.T) (port int) {
	t.Helper()
	return newEchoOn(t, listenLoopback(t))
}

func newEchoOn(t *testing.T, l net.Listener) (port int) {
	t.Helper()
	return serveTCP(t, l, func(conn net.Conn) { io.Copy(conn, conn) })
}

// serveTCP gives each connection of l to serve, and closes it behind that.
func serveTCP(t *testing.T, l net.Listener, serve func(net.Conn)) (port int) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
