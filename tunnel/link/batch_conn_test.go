package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"
)

// batchPair is a batchConn, the server behind it, and the socket of that.
func batchPair(t *testing.T) (client *batchConn, server *tls.Conn, far *splitConn) {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Issue("relay.test")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if conn, err := l.Accept(); err == nil {
			accepted <- conn
		}
	}()
	below, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { below.Close() })
	conn, ok := <-accepted
	if !ok {
		t.Fatal("no connection came")
	}
	far = &splitConn{Conn: conn}
	server = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})
	t.Cleanup(func() { server.Close() })
	client = newBatchConn(below, func(c net.Conn) *tls.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) })
	shaken := make(chan error, 1)
	go func() { shaken <- server.HandshakeContext(ctx) }()
	if err := client.HandshakeContext(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	return client, server, far
}

// splitConn keeps back the end of what is written while it is told to.
type splitConn struct {
	net.Conn
	keep int // bytes of each write
	kept []byte
}

func (c *splitConn) Write(b []byte) (int, error) {
	n := max(0, len(b)-c.keep)
	c.kept = append(c.kept, b[n:]...)
	_, err := c.Conn.Write(b[:n])
	return len(b), err
}

// TestReadNowDoesNotWait: half a record is nothing yet, and is not lost.
func TestReadNowDoesNotWait(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("everywhere else it finds nothing")
	}
	client, server, far := batchPair(t)
	read := func() []byte {
		t.Helper()
		b := make([]byte, 100)
		n, err := client.ReadNow(b)
		if err != nil {
			t.Fatal(err)
		}
		return b[:n]
	}
	if got := read(); len(got) > 0 {
		t.Fatalf("%d bytes came of nothing", len(got))
	}
	server.Write([]byte("one"))
	far.keep = 5
	server.Write([]byte("two"))
	var got []byte
	for end := time.Now().Add(20 * time.Second); len(got) == 0; got = read() {
		if time.Now().After(end) {
			t.Fatal("what was written never came")
		}
	}
	if string(got) != "one" {
		t.Fatalf("%q came first", got)
	}
	for range 10 {
		if got := read(); len(got) > 0 {
			t.Fatalf("%q came of a record that is not whole", got)
		}
	}
	go far.Conn.Write(far.kept)
	b := make([]byte, 100)
	if n, err := client.Read(b); string(b[:n]) != "two" || err != nil {
		t.Errorf("then %q came, %v", b[:n], err)
	}
	far.Conn.Close()
	for end := time.Now().Add(20 * time.Second); ; {
		n, err := client.ReadNow(b)
		if err != nil {
			break
		}
		if n > 0 || time.Now().After(end) {
			t.Fatalf("%d bytes, and the end never came", n)
		}
	}
}

// TestWriteNowLeavesWhatHasNoRoom writes to a peer that does not read until
// nothing goes any more, and then that all of it comes.
func TestWriteNowLeavesWhatHasNoRoom(t *testing.T) {
	client, server, _ := batchPair(t)
	var err error
	var want []byte
	random := rand.NewChaCha8([32]byte{1})
	for left := false; !left; {
		b := make([]byte, 5000)
		random.Read(b)
		want = append(want, b...)
		if left, err = client.WriteNow(b); err != nil {
			t.Fatal(err)
		}
	}
	flushed := make(chan error, 1)
	go func() {
		err := client.Flush()
		if err == nil {
			_, err = client.Write([]byte("the end"))
		}
		flushed <- err
	}()
	want = append(want, "the end"...)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came otherwise, %v", len(want), err)
	}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}
