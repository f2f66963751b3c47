package edge

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// maxHello bounds what is read to find the name in a ClientHello: the largest
// message that crypto/tls takes, in records.
const maxHello = 68 << 10

var errPeeked = errors.New("the name is known")

// greeting is what a TLS ClientHello asks for.
type greeting struct {
	name   string   // in lower case; "" for none
	protos []string // ALPN
	read   []byte   // all bytes read, for whoever answers
}

// serverName is a name as the table has it.
func serverName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// peekHello reads a TLS ClientHello.
func peekHello(conn net.Conn, limit time.Duration) (greeting, error) {
	conn.SetReadDeadline(time.Now().Add(limit))
	defer conn.SetReadDeadline(time.Time{})
	return parseHello(conn)
}

// parseHello lets crypto/tls read the hello, so that records and extensions are
// taken apart by code that is tried.
func parseHello(r io.Reader) (greeting, error) {
	var buf bytes.Buffer
	var g greeting
	peeked := false
	err := tls.Server(&readOnly{r: io.TeeReader(io.LimitReader(r, maxHello), &buf)}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			g.name, g.protos, peeked = serverName(hello.ServerName), slices.Clone(hello.SupportedProtos), true
			return nil, errPeeked
		},
	}).Handshake()
	if !peeked {
		return greeting{}, err
	}
	g.read = buf.Bytes()
	return g, nil
}

// readOnly is a connection that swallows the alert that ends the peek.
type readOnly struct{ r io.Reader }

func (c *readOnly) Read(b []byte) (int, error)       { return c.r.Read(b) }
func (c *readOnly) Write(b []byte) (int, error)      { return len(b), nil }
func (c *readOnly) Close() error                     { return nil }
func (c *readOnly) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *readOnly) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *readOnly) SetDeadline(time.Time) error      { return nil }
func (c *readOnly) SetReadDeadline(time.Time) error  { return nil }
func (c *readOnly) SetWriteDeadline(time.Time) error { return nil }

// passThrough returns the endpoint that wants a name's TLS undecrypted, if any.
func (e *Edge) passThrough(name string) *Endpoint {
	if name == "" {
		return nil
	}
	if ep := e.domain(name, store.SlotTLS); ep != nil && ep.Type == wire.TypeTLS {
		return ep
	}
	return nil
}
