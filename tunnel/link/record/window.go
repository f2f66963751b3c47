package record

// windowSize is how many records behind the newest an older one may arrive; one word of bits is
// always partially used.
const (
	windowWords = 64
	windowSize  = (windowWords - 1) * 64
)

// window rejects records that arrived before (RFC 6347 §4.1.2.6). The zero value accepts any first
// record.
type window struct {
	next uint64 // one above the newest
	bits [windowWords]uint64
}

// fresh reports whether n is neither seen nor too old.
func (w *window) fresh(n uint64) bool {
	if n >= w.next {
		return true
	}
	if w.next-n > windowSize {
		return false
	}
	return w.bits[n/64%windowWords]&(1<<(n%64)) == 0
}

// mark remembers n, which must be fresh and authenticated, and reports whether it is the newest.
func (w *window) mark(n uint64) (newest bool) {
	if n >= w.next {
		// Words between the old newest and n hold bits of an earlier round.
		from, to := w.next/64, n/64
		if w.next%64 != 0 {
			from++
		}
		if w.next == 0 || to-from >= windowWords && to >= from {
			clear(w.bits[:])
		} else {
			for i := from; i <= to; i++ {
				w.bits[i%windowWords] = 0
			}
		}
		w.next = n + 1
		newest = true
	}
	w.bits[n/64%windowWords] |= 1 << (n % 64)
	return newest
}
