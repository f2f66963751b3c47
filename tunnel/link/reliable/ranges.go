package reliable

import "slices"

// intervals is a set of numbers as ascending, disjoint, non-adjacent spans with
// hi excluded.
type intervals []span

// add includes [lo, hi) and returns how many numbers were new.
func (r *intervals) add(lo, hi uint64) uint64 {
	if lo >= hi {
		return 0
	}
	s := *r
	n := len(s)
	// Whatever arrives in order extends the last span.
	if n == 0 || lo > s[n-1].hi {
		*r = append(s, span{lo, hi})
		return hi - lo
	}
	if lo >= s[n-1].lo {
		fresh := max(hi, s[n-1].hi) - s[n-1].hi
		s[n-1].hi += fresh
		return fresh
	}
	i := s.from(lo)
	fresh, j := hi-lo, i
	merged := span{lo, hi}
	for ; j < n && s[j].lo <= hi; j++ {
		fresh -= min(hi, s[j].hi) - min(max(lo, s[j].lo), min(hi, s[j].hi))
		merged.lo, merged.hi = min(merged.lo, s[j].lo), max(merged.hi, s[j].hi)
	}
	if i == j {
		*r = slices.Insert(s, i, merged)
		return fresh
	}
	s[i] = merged
	*r = slices.Delete(s, i+1, j)
	return fresh
}

// from returns the index of the first span that does not end before n.
func (r intervals) from(n uint64) int {
	i, _ := slices.BinarySearchFunc(r, n, func(e span, v uint64) int {
		if e.hi < v {
			return -1
		}
		return 1
	})
	return i
}

// remove excludes [lo, hi).
func (r *intervals) remove(lo, hi uint64) {
	if lo >= hi {
		return
	}
	s := *r
	for i := s.from(lo); i < len(s); i++ {
		switch e := s[i]; {
		case e.hi <= lo:
		case e.lo >= hi:
			*r = s
			return
		case e.lo < lo && e.hi > hi:
			s[i].hi = lo
			*r = slices.Insert(s, i+1, span{hi, e.hi})
			return
		case e.lo < lo:
			s[i].hi = lo
		case e.hi > hi:
			s[i].lo = hi
		default:
			s = slices.Delete(s, i, i+1)
			i--
		}
	}
	*r = s
}

// keptRanges is how many ranges of received packets are remembered, and thus reported in one ACK.
const keptRanges = 48

// received is the set of packet numbers that have arrived, for ACK frames.
type received struct {
	set   intervals
	floor uint64 // numbers below are no longer told
}

// add records a number. It reports whether the number was new, and whether it opens or closes a
// gap.
func (r *received) add(number uint64) (fresh, reordered bool) {
	if number < r.floor {
		return true, true
	}
	n := len(r.set)
	if n > 0 && r.set[n-1].hi == number {
		r.set[n-1].hi++
		return true, false
	}
	reordered = n > 0
	if r.set.add(number, number+1) == 0 {
		return false, false
	}
	if extra := len(r.set) - keptRanges; extra > 0 {
		r.floor = r.set[extra-1].hi
		r.set = slices.Delete(r.set, 0, extra)
	}
	return true, reordered
}

// forget stops telling numbers up to largest: the peer knows that we know. The newest
// range is always told.
func (r *received) forget(largest uint64) {
	if n := len(r.set); n > 0 {
		end := min(largest+1, r.set[n-1].lo)
		r.set.remove(0, end)
		r.floor = max(r.floor, end)
	}
}

// ranges appends what an ACK reports, newest first, ends included.
func (r *received) ranges(to []span) []span {
	for i := len(r.set) - 1; i >= 0; i-- {
		to = append(to, span{r.set[i].lo, r.set[i].hi - 1})
	}
	return to
}
