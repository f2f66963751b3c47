package bare

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"math/big"
	"net"
	"time"

	"adit/internal/sockio"
)

// sealedLink is TLS whose records come and leave many at a time, and not with a
// call of the system for each, as crypto/tls by itself has them.
type sealedLink struct {
	*tls.Conn
	records *recordConn
}

// sealedEnd is an end whose link is TLS over conn, by tls.Server or tls.Client.
func sealedEnd(ctx context.Context, conn net.Conn, side func(net.Conn, *tls.Config) *tls.Conn, config *tls.Config) (*end, error) {
	e := newEnd(conn)
	many := e.most + e.most>>4 // bytes of frames, and what the records add
	socket := sockio.Wrap(conn)
	records := &recordConn{Conn: socket, in: bufio.NewReaderSize(socket, many)}
	link := side(records, config)
	if err := link.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	records.out = bufio.NewWriterSize(socket, many)
	e.link = &sealedLink{link, records}
	return e, nil
}

// Read reads all complete records that are available, and at least one.
func (l *sealedLink) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	for err == nil && n < len(b) && l.records.whole() {
		var more int
		more, err = l.Conn.Read(b[n:])
		n += more
	}
	return n, err
}

func (l *sealedLink) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	if err != nil {
		return n, err
	}
	return n, l.records.out.Flush()
}

// Close ends the connection without a farewell, which would have to wait for the writer.
func (l *sealedLink) Close() error { return l.records.Conn.Close() }

// recordConn reads much at once and hands it on record by record, and gathers
// what is written once out is there.
type recordConn struct {
	net.Conn
	in   *bufio.Reader
	left int // of the record that is being read
	out  *bufio.Writer
}

const recordHeader = 5 // the last two bytes are how many follow

func (c *recordConn) Read(b []byte) (int, error) {
	if c.left == 0 {
		header, err := c.in.Peek(recordHeader)
		if err != nil {
			return 0, err
		}
		c.left = recordSize(header)
	}
	n, err := c.in.Read(b[:min(c.left, len(b))])
	c.left -= n
	return n, err
}

// whole reports whether all of a record is there that nobody has begun to read.
func (c *recordConn) whole() bool {
	if c.left > 0 || c.in.Buffered() < recordHeader {
		return false
	}
	header, err := c.in.Peek(recordHeader)
	return err == nil && c.in.Buffered() >= recordSize(header)
}

func recordSize(header []byte) int { return recordHeader + int(binary.BigEndian.Uint16(header[3:])) }

func (c *recordConn) Write(b []byte) (int, error) {
	if c.out == nil {
		return c.Conn.Write(b)
	}
	return c.out.Write(b)
}

// newKey is a certificate of this run.
func newKey() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
