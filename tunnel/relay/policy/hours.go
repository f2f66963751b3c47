package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // not every system has the time zone database
)

// Hours is a weekly plan of when a target is open.
type Hours struct {
	// Zone is an IANA time zone such as Europe/Berlin. If empty, UTC.
	Zone string   `json:"zone,omitempty"`
	Open []Window `json:"open"`
}

// Window is a span of open time on some days. If To is not after From, it is on the next
// day.
type Window struct {
	Days []string `json:"days,omitempty"` // mon, tue, wed, thu, fri, sat, sun; empty: all
	From string   `json:"from"`           // 15:04
	To   string   `json:"to"`             // 15:04 or 24:00; exclusive
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // as in time.Weekday

const (
	maxWindows = 50
	dayMinutes = 24 * 60
	weekLength = 7 * dayMinutes
)

// plan is Hours in a form ready for use: the minutes of the week that are open.
type plan struct {
	zone  *time.Location
	spans [][2]int // minutes since Sunday 0:00; the end may lie beyond the week
}

func parseMinute(text string) (int, bool) {
	if text == "24:00" {
		return dayMinutes, true
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != 5 {
		return 0, false
	}
	return t.Hour()*60 + t.Minute(), true
}

// check converts the days to lower case and returns the first fault.
func (h *Hours) check() error {
	if h.Zone == "Local" {
		return &FieldError{"hours.zone", "must be a time zone such as Europe/Berlin"}
	}
	if _, err := time.LoadLocation(h.Zone); err != nil {
		return &FieldError{"hours.zone", fmt.Sprintf("%q is not a time zone such as Europe/Berlin", h.Zone)}
	}
	if len(h.Open) == 0 {
		return &FieldError{"hours.open", "needs at least one window; leave hours out to be always open"}
	}
	if len(h.Open) > maxWindows {
		return &FieldError{"hours.open", fmt.Sprintf("has more than %d windows", maxWindows)}
	}
	for i := range h.Open {
		w, field := &h.Open[i], fmt.Sprintf("hours.open[%d]", i)
		if len(w.Days) > len(weekdays) {
			return &FieldError{field + ".days", "names a day twice"}
		}
		for j, d := range w.Days {
			w.Days[j] = strings.ToLower(d)
			if !slices.Contains(weekdays, w.Days[j]) {
				return &FieldError{field + ".days", fmt.Sprintf("%q is not one of %s", d, strings.Join(weekdays, ", "))}
			}
		}
		from, ok := parseMinute(w.From)
		if !ok || from == dayMinutes {
			return &FieldError{field + ".from", fmt.Sprintf("%q is not a time of day such as 08:00", w.From)}
		}
		if _, ok := parseMinute(w.To); !ok {
			return &FieldError{field + ".to", fmt.Sprintf("%q is not a time of day such as 18:00 or 24:00", w.To)}
		}
	}
	return nil
}

// plan prepares a checked document's hours for use. Hours that cannot be parsed are never
// open.
func (h *Hours) plan() *plan {
	if h == nil {
		return nil
	}
	p := &plan{zone: time.UTC}
	zone, err := time.LoadLocation(h.Zone)
	if err != nil {
		return p
	}
	p.zone = zone
	for _, w := range h.Open {
		from, ok1 := parseMinute(w.From)
		to, ok2 := parseMinute(w.To)
		if !ok1 || !ok2 {
			continue
		}
		if to <= from {
			to += dayMinutes
		}
		for day, name := range weekdays {
			if len(w.Days) == 0 || slices.Contains(w.Days, name) {
				p.spans = append(p.spans, [2]int{day*dayMinutes + from, day*dayMinutes + to})
			}
		}
	}
	return p
}

// open reports whether a moment is inside a window, by local time.
func (p *plan) open(at time.Time) bool {
	local := at.In(p.zone)
	minute := int(local.Weekday())*dayMinutes + local.Hour()*60 + local.Minute()
	for _, s := range p.spans {
		if minute >= s[0] && minute < s[1] || minute+weekLength >= s[0] && minute+weekLength < s[1] {
			return true
		}
	}
	return false
}
