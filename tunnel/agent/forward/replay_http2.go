package forward

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
)

// repeatsByHTTP2 reports whether a request is replayed over HTTP/2, as the edge would send it.
func repeatsByHTTP2(of definition.Tunnel, again inspect.Repeat) bool {
	return of.LocalScheme == definition.SchemeH2C || again.HTTP2 && strings.HasPrefix(again.ContentType, "application/grpc")
}

// repeatHTTP2 sends a request, given in HTTP/1.1 form, to origin over HTTP/2, and reads the whole
// response. tap hears both.
func repeatHTTP2(ctx context.Context, origin net.Conn, tap *inspect.Tap, raw []byte) error {
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return err
	}
	req.RequestURI, req.Close = "", false
	req.URL.Scheme, req.URL.Host = "http", req.Host
	if req.Header["User-Agent"] == nil {
		req.Header.Set("User-Agent", "") // else the transport adds its own
	}
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/grpc") {
		req.Header.Set("Te", "trailers") // gRPC asks for it of all its clients
	}
	transport := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return heardConn{origin, tap}, nil },
		DisableCompression: true,
		Protocols:          new(http.Protocols),
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// heardConn is a connection to an origin, heard by a tap.
type heardConn struct {
	net.Conn
	tap *inspect.Tap
}

func (c heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.FromOrigin(b[:n])
	return n, err
}

func (c heardConn) Write(b []byte) (int, error) {
	c.tap.FromVisitor(b) // it must know of a request before the origin can answer it
	return c.Conn.Write(b)
}
