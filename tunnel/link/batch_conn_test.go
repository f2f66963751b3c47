package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// TestWriteNowLeavesWhatHasNoRoom writes to a peer that does not read until
// nothing goes any more, and then that all of it comes.
func TestWriteNowLeavesWhatHasNoRoom(t *testing.T) {
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
	defer below.Close()
	far, ok := <-accepted
	if !ok {
		t.Fatal("no connection came")
	}
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})
	defer server.Close()
	client := newBatchConn(below, func(c net.Conn) *tls.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) })
	shaken := make(chan error, 1)
	go func() { shaken <- server.HandshakeContext(ctx) }()
	if err := client.HandshakeContext(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
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
