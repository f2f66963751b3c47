package accesslog

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"adit/internal/netblock"
	"adit/tunnel/relay/store/events"
	"adit/tunnel/wire"
)

// Limits on what one turn of a search reads.
const (
	searchBatches = 2000 // a million events
	searchTime    = 3 * time.Second
	noCountry     = "none"
)

// Question selects events. A zero field selects all.
type Question struct {
	Since, Until time.Time
	Endpoint     string // id
	ClientID     string
	Key          string
	Node         string
	Method       string
	User         string // name of the user, ignoring case
	Country      string // DE, US-CA, or none
	Cursor       string
	Host         string
	Address      string // address or CIDR
	Path         string // prefix
	Status       int    // 404, or 4 for the class 4xx
	Refused      string // rule, any, none or shadow
	Limit        int
}

// Page is the result of one turn of a search, newest first.
type Page struct {
	Items    []wire.Access `json:"items"`
	Next     string        `json:"next,omitempty"`
	Complete bool          `json:"complete"`
}

// FieldError is returned for an invalid question.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// filter is a checked question.
type filter struct {
	q      Question
	within netip.Prefix
	from   events.Cursor
}

func filterOf(q Question) (filter, error) {
	f := filter{q: q}
	if q.Address != "" {
		p, err := netblock.Parse(q.Address)
		if err != nil {
			return f, &FieldError{"address", fmt.Sprintf("%q is not an address or CIDR", q.Address)}
		}
		f.within = p
	}
	var ok bool
	if f.from, ok = events.ParseCursor(q.Cursor); !ok {
		return f, &FieldError{"cursor", "the cursor is not one that an answer gave"}
	}
	f.q.Country = strings.ToUpper(q.Country)
	return f, nil
}

func (f *filter) match(e *wire.Access) bool {
	q := &f.q
	switch {
	case !q.Since.IsZero() && e.Time.Before(q.Since), !q.Until.IsZero() && e.Time.After(q.Until):
	case q.Endpoint != "" && e.Endpoint != q.Endpoint, q.Key != "" && e.Key != q.Key:
	case q.ClientID != "" && e.ClientID != q.ClientID, q.Node != "" && e.Node != q.Node:
	case q.Host != "" && !strings.EqualFold(e.Host, q.Host):
	case q.Method != "" && !strings.EqualFold(e.Method, q.Method):
	case q.User != "" && !strings.EqualFold(e.User, q.User):
	case q.Path != "" && !strings.HasPrefix(e.Path, q.Path):
	case q.Status != 0 && e.Status != q.Status && e.Status/100 != q.Status:
	case !matchRefused(q.Refused, e.Refused):
	case !matchPlace(q.Country, e.Country):
	case f.within.IsValid() && !contains(f.within, e.Visitor):
	default:
		return true
	}
	return false
}

func matchRefused(asked, rule string) bool {
	isShadow := strings.HasPrefix(rule, "shadow:")
	switch asked {
	case "":
		return true
	case "any":
		return rule != "" && !isShadow
	case "none":
		return rule == ""
	case "shadow":
		return isShadow
	}
	return rule == asked
}

func matchPlace(asked, place string) bool {
	switch {
	case asked == "":
		return true
	case strings.EqualFold(asked, noCountry):
		return place == ""
	}
	rest, ok := strings.CutPrefix(place, asked)
	return ok && (rest == "" || rest[0] == '-')
}

func contains(p netip.Prefix, text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && p.Contains(a)
}

// Search looks through all stored events, in turns of limited work. For an invalid
// question, it and the functions below return a FieldError.
func (a *Log) Search(ctx context.Context, q Question) (Page, error) {
	f, err := filterOf(q)
	if err != nil {
		return Page{}, err
	}
	a.Flush()
	page := Page{Items: []wire.Access{}}
	next, done, err := a.events.Walk(ctx, events.Scan{
		From: f.from, Since: q.Since, Until: q.Until, Batches: searchBatches, Stop: time.Now().Add(searchTime),
	}, func(e *wire.Access) bool {
		if f.match(e) {
			page.Items = append(page.Items, *e)
		}
		return len(page.Items) < max(q.Limit, 1)
	})
	if err != nil {
		return page, err
	}
	page.Complete = done
	if !done {
		page.Next = next.String()
	}
	return page, nil
}

// Export calls give with all matching events, newest first, up to the limit if there is
// one. It keeps one batch of them in memory.
func (a *Log) Export(ctx context.Context, q Question, give func(*wire.Access) error) error {
	f, err := filterOf(q)
	if err != nil {
		return err
	}
	a.Flush()
	count := 0
	var failed error
	_, _, err = a.events.Walk(ctx, events.Scan{From: f.from, Since: q.Since, Until: q.Until}, func(e *wire.Access) bool {
		if ctx.Err() != nil {
			failed = ctx.Err()
			return false
		}
		if !f.match(e) {
			return true
		}
		if failed = give(e); failed != nil {
			return false
		}
		count++
		return q.Limit == 0 || count < q.Limit
	})
	return errors.Join(err, failed)
}

// Follow calls give with the events of all nodes as they are stored, until ctx ends or
// give returns an error. missed is how many batches came too fast. The first call has no
// events and reports that following has begun.
func (a *Log) Follow(ctx context.Context, q Question, give func(list []wire.Access, missed int) error) error {
	f, err := filterOf(q)
	if err != nil {
		return err
	}
	first := true
	return a.events.Follow(ctx, func(batch []wire.Access, missed int) error {
		var list []wire.Access
		for i := range batch {
			if f.match(&batch[i]) {
				list = append(list, batch[i])
			}
		}
		if !first && len(list) == 0 && missed == 0 {
			return nil
		}
		first = false
		return give(list, missed)
	})
}
