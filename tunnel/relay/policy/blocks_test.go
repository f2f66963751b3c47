package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestBlocksMatchAsAWalkDoes compares with a walk through the list, in which the first
// network that contains the address decides.
func TestBlocksMatchAsAWalkDoes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		random := func() netip.Addr { // of few addresses, so that lists have them
			if r.IntN(2) == 0 {
				return netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(4)), byte(r.IntN(8))})
			}
			return netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 7: byte(r.IntN(4)), 15: byte(r.IntN(8))})
		}
		var texts []string
		for range r.IntN(40) {
			a := random()
			text := netip.PrefixFrom(a, r.IntN(a.BitLen()+1)).String()
			switch {
			case r.IntN(4) == 0:
				text = a.String()
			case r.IntN(8) == 0 && a.Is4():
				text = fmt.Sprintf("::ffff:%s/%d", a, 96+r.IntN(33))
			}
			texts = append(texts, text)
		}
		all := blocksOf(texts)
		for range 200 {
			a := random()
			var want netip.Prefix
			for _, text := range texts {
				if p, err := parsePrefix(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				} else if p.Contains(a) {
					want = p
					break
				}
			}
			if got, ok := all.match(a); got != want || ok != want.IsValid() {
				t.Fatalf("%s in %q: got %v, want %v", a, texts, got, want)
			}
		}
	}
}

// BenchmarkBlocks looks up an address that is not in a list of 10,000 networks.
func BenchmarkBlocks(b *testing.B) {
	var texts []string
	for i := range maxRules {
		texts = append(texts, fmt.Sprintf("10.%d.%d.0/%d", i/256, i%256, 20+i%5))
	}
	all, a := blocksOf(texts), netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		if p, ok := all.match(a); ok {
			b.Fatalf("%s is in %s", a, p)
		}
	}
}
