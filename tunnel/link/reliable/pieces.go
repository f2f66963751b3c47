package reliable

import "slices"

// pieceRun is how many pieces a newly split run starts with; a run may have up to twice as many.
const pieceRun = 64

// pieces is the part of a stream that has arrived, as the pieces between its gaps. There may be
// thousands, in any order that a peer likes, so they are kept in runs, and adding one costs no more
// than searching one run. The zero value is empty; it must not be copied.
type pieces struct {
	runs [][]span // ascending; none is empty
	one  [1][]span
	n    int // pieces in all
}

// first returns the lowest piece. There must be one.
func (p *pieces) first() span { return p.runs[0][0] }

// add includes [lo, hi) and returns how many numbers were new.
func (p *pieces) add(lo, hi uint64) uint64 {
	if lo >= hi {
		return 0
	}
	if p.runs == nil {
		p.runs = p.one[:]
	}
	r := len(p.runs) - 1
	if r > 0 && lo < p.runs[r][0].lo { // what arrives in order is of the last run
		r, _ = slices.BinarySearchFunc(p.runs, lo, func(run []span, v uint64) int {
			if run[len(run)-1].hi < v {
				return -1
			}
			return 1
		})
	}
	run := intervals(p.runs[r])
	before := len(run)
	fresh := run.add(lo, hi)
	p.n += len(run) - before
	for r+1 < len(p.runs) && p.runs[r+1][0].lo <= hi { // what it touches of the runs behind is of its last piece
		next, last := p.runs[r+1], &run[len(run)-1]
		k := 0
		for ; k < len(next) && next[k].lo <= hi; k++ {
			fresh -= min(hi, next[k].hi) - next[k].lo
			last.hi = max(last.hi, next[k].hi)
		}
		p.n -= k
		if next = slices.Delete(next, 0, k); len(next) > 0 {
			p.runs[r+1] = next
			break
		}
		p.runs = slices.Delete(p.runs, r+1, r+2)
	}
	if len(run) > 2*pieceRun {
		half := run[pieceRun:]
		p.runs = slices.Insert(p.runs, r+1, slices.Clone([]span(half)))
		clear(half)
		run = run[:pieceRun]
	}
	p.runs[r] = run
	return fresh
}
