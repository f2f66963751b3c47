package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// capturing is a socket that keeps a copy of all that passes.
type capturing struct {
	net.PacketConn
	mu      *sync.Mutex
	packets *[][]byte
}

func (c capturing) keep(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.packets = append(*c.packets, bytes.Clone(b))
}

func (c capturing) ReadFrom(b []byte) (int, net.Addr, error) {
	n, addr, err := c.PacketConn.ReadFrom(b)
	if err == nil {
		c.keep(b[:n])
	}
	return n, addr, err
}

func (c capturing) WriteTo(b []byte, addr net.Addr) (int, error) {
	c.keep(b)
	return c.PacketConn.WriteTo(b, addr)
}

// checkRecords returns nil if a datagram is nothing but records of DTLS 1.2
// (RFC 6347 §4.1, RFC 9146 §4). The first flights of a handshake may name
// version 1.0 (RFC 6347 §4.2.1).
func checkRecords(b []byte) error {
	const handshake, alert, changeCipherSpec, application, withCID = 22, 21, 20, 23, 25
	if len(b) == 0 {
		return fmt.Errorf("an empty datagram")
	}
	for len(b) > 0 {
		if len(b) < 13 {
			return fmt.Errorf("%d bytes that are no record", len(b))
		}
		typ, version, epoch := b[0], binary.BigEndian.Uint16(b[1:]), binary.BigEndian.Uint16(b[3:])
		at := 11
		switch {
		case typ == withCID && epoch == 1:
			at += 8 // the Connection ID
		case epoch == 0 && (typ == handshake || typ == changeCipherSpec || typ == alert):
		case epoch == 1 && (typ == handshake || typ == application || typ == alert):
		default:
			return fmt.Errorf("a record of type %d in epoch %d", typ, epoch)
		}
		if version != 0xfefd && !(version == 0xfeff && epoch == 0 && typ == handshake) {
			return fmt.Errorf("a record of version %#x", version)
		}
		if len(b) < at+2 || len(b) < at+2+int(binary.BigEndian.Uint16(b[at:])) {
			return fmt.Errorf("a record that is longer than its datagram")
		}
		b = b[at+2+int(binary.BigEndian.Uint16(b[at:])):]
	}
	return nil
}

// TestUDPHoldsNothingButDTLS captures a session from its first datagram to its
// last, and looks for the plaintext too.
func TestUDPHoldsNothingButDTLS(t *testing.T) {
	var mu sync.Mutex
	var packets [][]byte
	l, fingerprint := testListener(t, ListenConfig{})
	client, server := dialDTLSPair(t, l, DialConfig{
		Fingerprint: fingerprint,
		ListenPacket: func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
			socket, err := listenUDP(ctx, relay)
			return capturing{socket, &mu, &packets}, err
		},
	})
	secret := bytes.Repeat([]byte("the origin's plaintext. "), 20_000)
	a, b := connect(t, client, server)
	go func() { a.Write(secret); a.CloseWrite() }()
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(secret))
	}
	go func() { b.Write(secret); b.CloseWrite() }()
	io.ReadAll(a)
	client.SendDatagram(secret[:1000])
	server.SendDatagram(secret[:1000])
	server.ReceiveDatagram(testContext(t), make([]byte, 2000))
	client.Close("the reason is secret too")
	<-server.Done()
	server.Close("")
	l.Close()

	mu.Lock()
	defer mu.Unlock()
	if len(packets) < 50 {
		t.Errorf("captured %d datagrams, want more", len(packets))
	}
	packets = append(packets, strayAlert) // which a socket of its own sends
	for i, p := range packets {
		if err := checkRecords(p); err != nil {
			t.Fatalf("datagram %d: %v: %x", i, err, p[:min(len(p), 32)])
		}
		for _, plain := range []string{"the origin's", "is secret"} {
			if bytes.Contains(p, []byte(plain)) {
				t.Fatalf("datagram %d has the plaintext", i)
			}
		}
	}
}
