package record

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"hash"
	"net/netip"
	"reflect"
	"time"
	"unsafe"

	"github.com/pion/dtls/v3"
)

// Handshake message types (RFC 6347 §4.3.2).
const (
	clientHello        = 1
	helloVerifyRequest = 3
)

const (
	cookieSize  = 20
	cookieLife  = 30 * time.Second // and at most twice of it
	helloHeader = headerSize + 12
)

// hello is what must be known about a ClientHello before any state is kept for it. Its slices point
// into the datagram.
type hello struct {
	seq     uint64 // record number
	message uint16
	random  []byte
	cookie  []byte
	at      int // where the cookie's length byte is in the datagram
	size    int // of the record
}

// parseHello parses a ClientHello that is contained in one record, as those of all known clients
// are.
func parseHello(p []byte) (h hello, ok bool) {
	r, _, ok := parse(p, 0)
	if !ok || r.typ != typeHandshake || r.epoch() != 0 || len(r.whole) < helloHeader+2+32+1 {
		return h, false
	}
	m := r.body
	length := int(m[1])<<16 | int(m[2])<<8 | int(m[3])
	if m[0] != clientHello || length != len(m)-12 ||
		m[6]|m[7]|m[8] != 0 || m[1] != m[9] || m[2] != m[10] || m[3] != m[11] || m[12] != 0xfe || m[13] != 0xfd {
		return h, false
	}
	at := helloHeader + 2 + 32
	at += 1 + int(p[at])
	if at >= len(r.whole) || at+1+int(p[at]) > len(r.whole) {
		return h, false
	}
	return hello{
		seq: r.number(), message: binary.BigEndian.Uint16(m[4:]),
		random: m[14:46], cookie: p[at+1 : at+1+int(p[at])], at: at, size: len(r.whole),
	}, true
}

// withoutCookie makes the ClientHello that came, or would have come, before the one in p: message
// and record number zero, no cookie.
func (h hello) withoutCookie(p []byte) []byte {
	p = p[:h.size]
	first := append([]byte(nil), p[:h.at]...)
	first = append(first, 0)
	first = append(first, p[h.at+1+len(h.cookie):]...)
	clear(first[5:11])
	binary.BigEndian.PutUint16(first[11:], uint16(len(first)-headerSize))
	n := len(first) - helloHeader
	for _, at := range []int{headerSize + 1, headerSize + 9} {
		first[at], first[at+1], first[at+2] = byte(n>>16), byte(n>>8), byte(n)
	}
	first[headerSize+4], first[headerSize+5] = 0, 0
	return first
}

// cookies makes and checks the cookies that prove a client's address, without keeping state for
// them. It must be used by one goroutine only.
type cookies struct {
	mac   hash.Hash
	start time.Time
	sum   [sha256.Size]byte
	in    [8 + 16 + 2 + 32]byte
	out   [helloHeader + 3 + cookieSize]byte
}

func newCookies() *cookies {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &cookies{mac: hmac.New(sha256.New, key), start: time.Now()}
}

func (c *cookies) make(dst []byte, period uint32, from netip.AddrPort, random []byte) []byte {
	binary.BigEndian.PutUint64(c.in[:], uint64(period))
	a := from.Addr().As16()
	copy(c.in[8:], a[:])
	binary.BigEndian.PutUint16(c.in[24:], from.Port())
	copy(c.in[26:], random)
	c.mac.Reset()
	c.mac.Write(c.in[:])
	dst = binary.BigEndian.AppendUint32(dst, period)
	return append(dst, c.mac.Sum(c.sum[:0])[:cookieSize-4]...)
}

func (c *cookies) period(now time.Time) uint32 { return uint32(now.Sub(c.start) / cookieLife) }

// valid reports whether the cookie was issued to this address recently.
func (c *cookies) valid(h hello, from netip.AddrPort, now time.Time) bool {
	if len(h.cookie) != cookieSize {
		return false
	}
	period := binary.BigEndian.Uint32(h.cookie)
	if current := c.period(now); period != current && period+1 != current {
		return false
	}
	var want [cookieSize]byte
	c.make(want[:0], period, from, h.random)
	return subtle.ConstantTimeCompare(want[:], h.cookie) == 1
}

// request returns the HelloVerifyRequest for a ClientHello. It is smaller than what it answers, and
// valid until the next one.
func (c *cookies) request(h hello, from netip.AddrPort, now time.Time) []byte {
	p := append(c.out[:0], typeHandshake, 0xfe, 0xfd)
	p = binary.BigEndian.AppendUint64(p, h.seq) // RFC 6347 §4.2.1: the number of the hello
	p = append(p, 0, 12+3+cookieSize)
	p = append(p, helloVerifyRequest, 0, 0, 3+cookieSize, 0, 0, 0, 0, 0, 0, 0, 3+cookieSize)
	p = append(p, 0xfe, 0xfd, cookieSize)
	return c.make(p, c.period(now), from, h.random)
}

// adoptCookie makes pion, which waits for the cookie that it believes it sent, accept the one that
// was sent before pion was involved. pion cannot be told about a stateless cookie exchange, and the
// exchange cannot be left out: messages are numbered from it onwards, and the numbers are part of
// the transcript. It must be called where pion writes its HelloVerifyRequest, in the goroutine that
// owns the state.
func adoptCookie(conn *dtls.Conn, cookie []byte) error {
	f := reflect.ValueOf(conn).Elem().FieldByName("state")
	if f.IsValid() {
		f = f.FieldByName("cookie")
	}
	if !f.IsValid() || f.Type() != reflect.TypeFor[[]byte]() {
		return errors.New("this version of pion keeps its cookie elsewhere")
	}
	*(*[]byte)(unsafe.Pointer(f.UnsafeAddr())) = append([]byte(nil), cookie...)
	return nil
}
