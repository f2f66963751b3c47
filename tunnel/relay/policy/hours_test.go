package policy

import (
	"testing"
	"time"
)

func TestHoursOfOpening(t *testing.T) {
	const (
		office = `{"hours":{"zone":"Europe/Berlin","open":[{"days":["MON","tue","wed","thu","fri"],"from":"08:00","to":"18:30"}]}}`
		night  = `{"hours":{"zone":"Asia/Shanghai","open":[{"days":["sat"],"from":"22:00","to":"06:00"}]}}`
		always = `{"hours":{"open":[{"from":"00:00","to":"24:00"}]}}`
		noon   = `{"hours":{"open":[{"from":"12:00","to":"12:00"}]}}` // round the clock, from noon to noon
	)
	for _, c := range []struct {
		doc, at string
		open    bool
	}{
		{office, "2026-11-23T08:00:00+01:00", true}, // a Monday
		{office, "2026-11-23T07:59:59+01:00", false},
		{office, "2026-11-23T18:29:59+01:00", true},
		{office, "2026-11-23T18:30:00+01:00", false},
		{office, "2026-11-22T12:00:00+01:00", false}, // a Sunday
		{office, "2026-07-20T06:30:00Z", true},       // summer: 08:30
		{office, "2026-11-23T06:30:00Z", false},      // winter: 07:30
		{night, "2026-11-21T22:00:00+08:00", true},   // a Saturday
		{night, "2026-11-22T05:59:59+08:00", true},   // the Sunday after it, over the end of the week
		{night, "2026-11-22T06:00:00+08:00", false},
		{night, "2026-11-22T22:00:00+08:00", false},
		{night, "2026-11-21T05:00:00+08:00", false},
		{always, "2026-11-22T23:59:59Z", true},
		{noon, "2026-11-22T11:59:59Z", true},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		p := New(parse(t, c.doc), nil)
		d, release := p.Enter(Request{Addr: addr("10.0.0.1"), HTTP: true}, at)
		release()
		if d.Allowed != c.open || !c.open && d.Rule != RuleHours {
			t.Errorf("%s at %s: got %+v, want open %v", c.doc, c.at, d, c.open)
		}
		if said, _ := p.Explain(Request{Addr: addr("10.0.0.1"), HTTP: true}, at); said.Allowed != c.open {
			t.Errorf("%s at %s: explained %+v", c.doc, c.at, said)
		}
	}
}

// TestHoursFollowTheClockOnTheWall covers the hour that occurs twice and the one that is
// skipped.
func TestHoursFollowTheClockOnTheWall(t *testing.T) {
	p := New(parse(t, `{"hours":{"zone":"Europe/Berlin","open":[{"from":"02:00","to":"03:00"}]}}`), nil)
	open := func(day string) (minutes int) {
		at, _ := time.Parse(time.RFC3339, day+"T00:00:00Z")
		for range 180 {
			if p.standing(addr("10.0.0.1"), at).Allowed {
				minutes++
			}
			at = at.Add(time.Minute)
		}
		return minutes
	}
	for day, want := range map[string]int{"2026-10-25": 120, "2026-03-29": 0, "2026-11-22": 60} {
		if got := open(day); got != want {
			t.Errorf("%s: open for %d minutes, want %d", day, got, want)
		}
	}
}
