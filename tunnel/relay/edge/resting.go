package edge

// resting is the place of a visitor among those that can be spared.
type resting struct {
	before, after *visitor
	is            bool
	between       bool // it has been answered, and http.Server itself ends it on a drain
	end           func()
}

// queue is the visitors that ask for nothing now, who has done so longest first.
type queue struct{ first, last *visitor }

func (q *queue) push(v *visitor, end func(), between bool) {
	q.remove(v)
	if v.gone {
		return
	}
	v.resting = resting{before: q.last, is: true, between: between, end: end}
	if q.last == nil {
		q.first = v
	} else {
		q.last.resting.after = v
	}
	q.last = v
}

func (q *queue) remove(v *visitor) {
	r := &v.resting
	if !r.is {
		return
	}
	if r.before == nil {
		q.first = r.after
	} else {
		r.before.resting.after = r.after
	}
	if r.after == nil {
		q.last = r.before
	} else {
		r.after.resting.before = r.before
	}
	*r = resting{}
}

// take removes those that a drain ends, and returns what ends them.
func (q *queue) take() (ends []func()) {
	for v := q.first; v != nil; {
		after := v.resting.after
		if !v.resting.between {
			ends = append(ends, v.resting.end)
			q.remove(v)
		}
		v = after
	}
	return ends
}
