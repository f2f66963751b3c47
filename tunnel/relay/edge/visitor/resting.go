package visitor

// Resting is the place of a visitor among those that can be spared. Its zero value is
// of one that asks for something.
type Resting struct {
	before, after *Resting
	is            bool
	between       bool // it has been answered, and http.Server itself ends it on a drain
	gone          bool // what it is said to do counts no more
	end           func()
}

// queue is the visitors that ask for nothing now, who has done so longest first.
type queue struct{ first, last *Resting }

func (q *queue) push(r *Resting, end func(), between bool) {
	q.remove(r)
	if r.gone {
		return
	}
	*r = Resting{before: q.last, is: true, between: between, end: end}
	if q.last == nil {
		q.first = r
	} else {
		q.last.after = r
	}
	q.last = r
}

func (q *queue) remove(r *Resting) {
	if !r.is {
		return
	}
	if r.before == nil {
		q.first = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		q.last = r.before
	} else {
		r.after.before = r.before
	}
	*r = Resting{gone: r.gone}
}

// take removes those that a drain ends, and returns what ends them.
func (q *queue) take() (ends []func()) {
	for r := q.first; r != nil; {
		after := r.after
		if !r.between {
			ends = append(ends, r.end)
			q.remove(r)
		}
		r = after
	}
	return ends
}
