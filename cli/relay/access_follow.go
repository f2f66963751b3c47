package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"adit/cli/localtime"
	"adit/internal/bytesize"
	"adit/internal/span"
	"adit/internal/visible"
	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

const (
	followBefore = 10      // events that --follow begins with
	maxLiveLine  = 1 << 20 // bytes; an event's are bounded by the relay
)

// follow shows the most recent matching events, and then new ones, until ctx ends. It asks for the
// existing ones once the relay has begun to report new ones, so that none is lost between the two;
// one may arrive by both.
func (a *running) follow(ctx context.Context, q url.Values, before int) error {
	body, err := a.Open(ctx, "/api/v1/access/live?"+q.Encode())
	if err != nil {
		return ended(ctx, err)
	}
	defer body.Close()
	var shown map[wire.Access]bool
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxLiveLine)
	kind := ""
	for lines.Scan() {
		if shown == nil {
			if shown, err = a.last(ctx, q, before); err != nil {
				return ended(ctx, err)
			}
		}
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			kind = value
		case name == "data" && kind == "access":
			var e wire.Access
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return fmt.Errorf("read an event of the relay: %w", err)
			}
			if shown[alike(e)] {
				continue
			}
			if err := a.tell(e); err != nil {
				return err
			}
		case name == "data" && kind == "missed":
			var missed struct{ Count int }
			if json.Unmarshal([]byte(value), &missed) == nil {
				fmt.Fprintf(a.std.Err, "%d events came too fast to be told of; `adit relay access` finds them\n", missed.Count)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return ended(ctx, fmt.Errorf("the relay's events ended: %w", err))
	}
	return ended(ctx, errors.New("the relay stopped sending events; has it been stopped?"))
}

// ended returns err, unless the user ended the command.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// last shows the most recent earlier events, and returns them.
func (a *running) last(ctx context.Context, q url.Values, n int) (map[wire.Access]bool, error) {
	shown := map[wire.Access]bool{}
	if n == 0 {
		return shown, nil
	}
	list, err := a.accessList(ctx, q, n)
	if err != nil {
		return nil, err
	}
	for i := len(list.Items) - 1; i >= 0; i-- {
		shown[alike(list.Items[i])] = true
		if err := a.tell(list.Items[i]); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// alike returns an event without the fields that it gets only once it is stored.
func alike(e wire.Access) wire.Access {
	e.ID = ""
	e.Time = e.Time.UTC().Round(0)
	return e
}

// tell shows an event on one line.
func (a *running) tell(e wire.Access) error {
	if a.std.JSON {
		return json.NewEncoder(a.std.Out).Encode(e)
	}
	who := e.Visitor
	if e.User != "" {
		who += " (" + e.User + ")"
	}
	line := fmt.Sprintf("%s %s %s %s, %s in, %s out, %s", localtime.WithoutYear(localtime.Text(e.Time)), statusText(e), who,
		strings.TrimSpace(e.Method+" "+e.Host+e.Path), bytesize.Text(e.BytesIn), bytesize.Text(e.BytesOut), span.Text(e.Duration))
	if e.Refused != "" {
		line += ", refused by " + e.Refused
	}
	_, err := fmt.Fprintln(a.std.Out, visible.Text(line))
	return err
}

// statusText returns the status of a response, or the same amount of space.
func statusText(e wire.Access) string {
	if e.Status == 0 {
		return "  –"
	}
	return strconv.Itoa(e.Status)
}

// accessList asks for the newest events, newest first.
func (a *running) accessList(ctx context.Context, filters url.Values, limit int) (console.AccessPage, error) {
	q := url.Values{"limit": {strconv.Itoa(min(limit, 1000))}}
	maps.Copy(q, filters)
	var list console.AccessPage
	for {
		var page console.AccessPage
		if err := a.Call(ctx, http.MethodGet, "/api/v1/access?"+q.Encode(), nil, &page); err != nil {
			return list, err
		}
		list.Items = append(list.Items, page.Items...)
		list.Next, list.Complete = page.Next, page.Complete
		if list.Complete || len(list.Items) >= limit {
			return list, nil
		}
		q.Set("cursor", page.Next)
		q.Set("limit", strconv.Itoa(min(limit-len(list.Items), 1000)))
	}
}
