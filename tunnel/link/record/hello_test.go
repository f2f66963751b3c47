package record

import (
	"encoding/binary"
	"testing"
)

// TestHellosThatDoNotFit has the lengths in a ClientHello lead to its end and beyond it.
func TestHellosThatDoNotFit(t *testing.T) {
	const message = 12 // what of a handshake message is before its body
	for size := range 48 {
		for _, session := range []int{0, 1, 2, 9, 255} {
			for _, cookie := range []int{0, 1, 2, 9, 255} {
				p := append([]byte{typeHandshake, 0xfe, 0xfd}, make([]byte, 8)...)
				p = binary.BigEndian.AppendUint16(p, uint16(message+size))
				p = append(p, clientHello, 0, 0, byte(size), 0, 0, 0, 0, 0, 0, 0, byte(size))
				body := make([]byte, 2+32+1+255+1)
				body[0], body[1], body[34], body[35+session] = 0xfe, 0xfd, byte(session), byte(cookie)
				p = append(p, body[:size]...)
				p = p[:len(p):len(p)]
				h, ok := parseHello(p)
				if fits := size >= 36+session+cookie; ok != fits {
					t.Fatalf("%d bytes, session %d, cookie %d: taken %v, want %v", size, session, cookie, ok, fits)
				}
				if ok && (len(h.cookie) != cookie || len(h.random) != 32) {
					t.Fatalf("%d bytes, session %d, cookie %d: got %+v", size, session, cookie, h)
				}
			}
		}
	}
}
