package visitor

// Resting is a visitor's place among those that can be spared. The zero value is for a visitor
// that is not idle.
type Resting struct {
	before, after *Resting
	is            bool
	between       bool // between requests; a drain leaves it to http.Server
	gone          bool // later calls for it have no effect
	end           func()
}

// queue holds the idle visitors, with those that have been idle longest first.
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

// take removes the visitors that a drain has to end, and returns their end functions.
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
