package record

import (
	"bytes"
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

// TestOnlyWholeHellosBeginHandshakes: a part of one, or what only resembles one, takes no
// place of a client's.
func TestOnlyWholeHellosBeginHandshakes(t *testing.T) {
	body := make([]byte, 2+32+1+1+cookieSize+4)
	body[0], body[1], body[35] = 0xfe, 0xfd, cookieSize
	p := append([]byte{typeHandshake, 0xfe, 0xfd}, make([]byte, 8)...)
	p = binary.BigEndian.AppendUint16(p, uint16(12+len(body)))
	p = append(p, clientHello, 0, 0, byte(len(body)), 0, 1, 0, 0, 0, 0, 0, byte(len(body)))
	p = append(p, body...)
	if h, ok := parseHello(p); !ok || h.message != 1 || len(h.cookie) != cookieSize || h.size != len(p) {
		t.Fatalf("got %+v, %v of a whole one", h, ok)
	}
	for what, at := range map[string][]int{
		"another type of record":  {0},
		"another epoch":           {3, 4},
		"another message":         {13},
		"another length":          {14, 15, 16},
		"a part from the middle":  {19, 20, 21},
		"a part of a longer one":  {22, 23, 24},
		"another version of DTLS": {25, 26},
	} {
		for _, i := range at {
			q := bytes.Clone(p)
			if q[i]++; i == 0 {
				q[i] = typeApplication
			}
			if _, ok := parseHello(q); ok {
				t.Errorf("%s, by byte %d: it is taken", what, i)
			}
		}
	}
}
