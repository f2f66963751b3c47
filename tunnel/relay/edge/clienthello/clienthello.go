// Package clienthello reads the beginning of a TLS connection: the server name and the
// protocols that the client asks for. The bytes read are kept for whoever answers the
// handshake.
package clienthello

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// maxHello bounds how much is read to find the name in a ClientHello. It is the largest
// message that crypto/tls accepts, in records.
const maxHello = 68 << 10

var errPeeked = errors.New("the name is known")

// Hello is what a TLS ClientHello asks for.
type Hello struct {
	Name   string   // in lower case; "" for none
	Protos []string // ALPN
	Bytes  []byte   // all bytes read, for whoever answers the handshake
}

// ServerName returns a server name in the form that the routing table uses.
func ServerName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// Peek reads a TLS ClientHello.
func Peek(conn net.Conn, limit time.Duration) (Hello, error) {
	conn.SetReadDeadline(time.Now().Add(limit))
	defer conn.SetReadDeadline(time.Time{})
	return parse(conn)
}

// parse has crypto/tls read the hello, so that well-tested code parses the records and
// extensions.
func parse(r io.Reader) (Hello, error) {
	var buf bytes.Buffer
	var g Hello
	peeked := false
	err := tls.Server(&readOnly{r: io.TeeReader(io.LimitReader(r, maxHello), &buf)}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			g.Name, g.Protos, peeked = ServerName(hello.ServerName), slices.Clone(hello.SupportedProtos), true
			return nil, errPeeked
		},
	}).Handshake()
	if !peeked {
		return Hello{}, err
	}
	g.Bytes = buf.Bytes()
	return g, nil
}

// readOnly is a connection that discards the alert with which the peek ends.
type readOnly struct{ r io.Reader }

func (c *readOnly) Read(b []byte) (int, error)       { return c.r.Read(b) }
func (c *readOnly) Write(b []byte) (int, error)      { return len(b), nil }
func (c *readOnly) Close() error                     { return nil }
func (c *readOnly) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *readOnly) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *readOnly) SetDeadline(time.Time) error      { return nil }
func (c *readOnly) SetReadDeadline(time.Time) error  { return nil }
func (c *readOnly) SetWriteDeadline(time.Time) error { return nil }

// IsPlainHTTP reports whether a handshake failed because the visitor sent the beginning of an
// HTTP request rather than TLS.
func IsPlainHTTP(err error) bool {
	var wrong tls.RecordHeaderError
	if !errors.As(err, &wrong) {
		return false
	}
	for i, c := range wrong.RecordHeader {
		if letter := 'A' <= c && c <= 'Z'; !letter && (i < 3 || c != ' ' && c != '/' && c != '*') {
			return false
		}
	}
	return true
}
