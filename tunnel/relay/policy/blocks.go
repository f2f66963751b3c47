package policy

import "net/netip"

// blocks is a list of addresses and networks that is searched by address without walking
// through it. Lists may be as long as the blocklists that operators exchange, and are
// consulted for every request.
type blocks struct {
	place   map[netip.Prefix]int // of a network in the list; the first if it is there twice
	lengths [2][]int             // of prefixes, without duplicates: IPv4, IPv6
}

// blocksOf parses the texts of a checked document.
func blocksOf(texts []string) blocks {
	b := blocks{place: make(map[netip.Prefix]int, len(texts))}
	seen := make(map[[2]int]bool)
	for i, text := range texts {
		p, err := parsePrefix(text)
		if err != nil {
			continue
		}
		if _, twice := b.place[p]; !twice {
			b.place[p] = i
		}
		f := family(p.Addr())
		if key := [2]int{f, p.Bits()}; !seen[key] {
			seen[key] = true
			b.lengths[f] = append(b.lengths[f], p.Bits())
		}
	}
	return b
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// match returns the first entry of the list that contains a.
func (b *blocks) match(a netip.Addr) (first netip.Prefix, ok bool) {
	at := len(b.place)
	for _, bits := range b.lengths[family(a)] {
		p, err := a.Prefix(bits)
		if err != nil {
			continue
		}
		if i, in := b.place[p]; in && (!ok || i < at) {
			first, at, ok = p, i, true
		}
	}
	return first, ok
}
