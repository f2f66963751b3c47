package edge

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// maxHello bounds what is read to find the name in a ClientHello: the largest
// message that crypto/tls takes, in records.
const maxHello = 68 << 10

var errPeeked = errors.New("the name is known")

// peekServerName reads a TLS ClientHello and returns the name that it asks for,
// "" if it asks for none, and all bytes read, for whoever answers it.
func peekServerName(conn net.Conn, limit time.Duration) (name string, read []byte, err error) {
	conn.SetReadDeadline(time.Now().Add(limit))
	defer conn.SetReadDeadline(time.Time{})
	return parseServerName(conn)
}

// parseServerName lets crypto/tls read the hello, so that records and
// extensions are taken apart by code that is tried.
func parseServerName(r io.Reader) (name string, read []byte, err error) {
	var buf bytes.Buffer
	peeked := false
	err = tls.Server(&readOnly{r: io.TeeReader(io.LimitReader(r, maxHello), &buf)}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, peeked = strings.ToLower(strings.TrimSuffix(hello.ServerName, ".")), true
			return nil, errPeeked
		},
	}).Handshake()
	if !peeked {
		return "", nil, err
	}
	return name, buf.Bytes(), nil
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
	if ep := e.table.domain(name, store.SlotTLS); ep != nil && ep.Type == wire.TypeTLS {
		return ep
	}
	return nil
}
