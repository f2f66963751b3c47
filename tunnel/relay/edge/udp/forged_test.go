package udp

import (
	"net/netip"
	"testing"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// TestForgedVisitorsGetNoMoreThanTheFactor counts packets with their IP and UDP headers in
// both directions. Otherwise the short query of a STUN client (RFC 8489, section 5) would not
// be answered until it is repeated.
func TestForgedVisitorsGetNoMoreThanTheFactor(t *testing.T) {
	const question = 20
	for visitor, most := range map[string]int{
		"192.0.2.1:1024":     3*(question+28) - 28,
		"[2001:db8::1]:1024": 3*(question+48) - 48,
	} {
		session := &gatherer{}
		b := &routing.Backend{Agent: &routing.Agent{Session: session}}
		ep, err := routing.New(routing.Config{}).Attach(routing.Face{Type: wire.TypeUDP}, b)
		if err != nil {
			t.Fatal(err)
		}
		p := &Port{all: letting(nil), ep: ep}
		asked := func() *flow {
			f := &flow{port: p, backend: b, visitor: netip.MustParseAddrPort(visitor)}
			f.asked(question)
			return f
		}
		if !asked().lets(make([]byte, most)) {
			t.Errorf("%s: an answer of %d bytes did not go back for a question of %d", visitor, most, question)
		}
		if asked().lets(make([]byte, most+1)) {
			t.Errorf("%s: an answer of %d bytes went back for a question of %d", visitor, most+1, question)
		}
		f := asked()
		f.lets(make([]byte, most))
		if f.lets(nil) {
			t.Errorf("%s: more went back than the factor", visitor)
		}
		f.asked(question)
		if !f.lets(make([]byte, 100*most)) {
			t.Errorf("%s: who has answered does not get all", visitor)
		}
	}
}
