package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	api        = "/api/v1"
	healthPath = "/healthz"
)

// Health asks whether the daemon answers. It needs no Bearer token.
func (c *Client) Health(ctx context.Context) (Health, error) {
	resp, err := c.send(ctx, http.MethodGet, healthPath, nil, nil)
	if err != nil {
		return Health{}, c.stranger(err)
	}
	defer resp.Body.Close()
	var h struct {
		Health
		Service string `json:"service"` // a relay's console names itself; a daemon has none
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&h)
	if ctx.Err() != nil {
		return Health{}, ctx.Err()
	}
	if err == nil && h.Status != "ok" {
		err = fmt.Errorf("its status is %q", h.Status)
	}
	if err == nil && h.Service != "" {
		err = fmt.Errorf("it is the console of a %s", h.Service)
	}
	if err != nil {
		return Health{}, &unreachable{base: c.base, err: err, kind: ErrForeign}
	}
	return h.Health, nil
}

// What net/http says of a program that does not speak HTTP; the second, if the program sent
// something before the request. There are no error types for either.
const (
	noHTTP    = "malformed HTTP"
	noWaiting = "readLoopPeekFailLocked: %!w(<nil>)"
)

// stranger tells a probe answered by something other than a daemon from one that nobody answers.
func (c *Client) stranger(err error) error {
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Code == "" || strings.Contains(err.Error(), noHTTP) || strings.Contains(err.Error(), noWaiting) {
		return &unreachable{base: c.base, err: err, kind: ErrForeign}
	}
	return err
}

// replayPath ends the path of a replay.
const replayPath = "/replay"

// Probe is like Health for a daemon that may hang: it waits at most 10 s, and its error then
// matches ErrSilent.
func (c *Client) Probe(ctx context.Context) (Health, error) {
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	h, err := c.Health(probing)
	// This is also the dialler's own limit: a system whose connection queue is full neither accepts
	// nor refuses anybody.
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() && ctx.Err() == nil {
		err = &unreachable{base: c.base, err: err, kind: ErrSilent}
	}
	return h, err
}

// AuthStatus describes the current token without its secret.
func (c *Client) AuthStatus(ctx context.Context) (AuthStatus, error) {
	return get[AuthStatus](ctx, c, api+"/auth/status")
}

// ConfigureAuth stores a token and waits until the relay has accepted it.
func (c *Client) ConfigureAuth(ctx context.Context, in AuthConfigure) (AuthStatus, error) {
	return do[AuthStatus](ctx, c, http.MethodPost, api+"/auth/configure", in)
}

// ForgetAuth removes the token and closes the session.
func (c *Client) ForgetAuth(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, api+"/auth", nil, nil)
}

// Status returns the state of the agent as a whole.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, api+"/status")
}

// Config returns the current configuration.
func (c *Client) Config(ctx context.Context) (Config, error) {
	return get[Config](ctx, c, api+"/config")
}

// Pause closes the session until Resume.
func (c *Client) Pause(ctx context.Context) (Status, error) {
	return do[Status](ctx, c, http.MethodPost, api+"/pause", nil)
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context) (Status, error) {
	return do[Status](ctx, c, http.MethodPost, api+"/resume", nil)
}

// Reconnect drops the session and makes a new one.
func (c *Client) Reconnect(ctx context.Context) (Status, error) {
	return do[Status](ctx, c, http.MethodPost, api+"/reconnect", nil)
}

// Endpoints returns the running tunnels' public faces, oldest first.
func (c *Client) Endpoints(ctx context.Context) ([]Endpoint, error) {
	return list[Endpoint](ctx, c, api+"/endpoints")
}

// Tunnels returns every tunnel, oldest first.
func (c *Client) Tunnels(ctx context.Context) ([]Tunnel, error) {
	return list[Tunnel](ctx, c, api+"/tunnels")
}

// Tunnel returns one tunnel.
func (c *Client) Tunnel(ctx context.Context, id string) (Tunnel, error) {
	return get[Tunnel](ctx, c, tunnelPath(id))
}

// CreateTunnel publishes a local service and waits for its public address.
func (c *Client) CreateTunnel(ctx context.Context, in TunnelCreate) (Tunnel, error) {
	return do[Tunnel](ctx, c, http.MethodPost, api+"/tunnels", in)
}

// UpdateTunnel changes the fields of a tunnel that are not nil in in.
func (c *Client) UpdateTunnel(ctx context.Context, id string, in TunnelUpdate) (Tunnel, error) {
	return do[Tunnel](ctx, c, http.MethodPatch, tunnelPath(id), in)
}

// StartTunnel starts a tunnel; if it is running already, that is not an error.
func (c *Client) StartTunnel(ctx context.Context, id string) (Tunnel, error) {
	return do[Tunnel](ctx, c, http.MethodPost, tunnelPath(id)+"/start", nil)
}

// StopTunnel stops a tunnel and keeps it.
func (c *Client) StopTunnel(ctx context.Context, id string) (Tunnel, error) {
	return do[Tunnel](ctx, c, http.MethodPost, tunnelPath(id)+"/stop", nil)
}

// DeleteTunnel deletes a tunnel and gives up its public address.
func (c *Client) DeleteTunnel(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, tunnelPath(id), nil, nil)
}

func tunnelPath(id string) string { return api + "/tunnels/" + url.PathEscape(id) }

func requestPath(id string) string { return api + "/requests/" + url.PathEscape(id) }

// RequestFilter selects inspected requests; its zero value selects the newest 200.
type RequestFilter struct {
	TunnelID string
	Kind     string // http or flow
	Method   string
	Status   string // a status such as 404, or a class such as 4xx
	Text     string // in method, host and path, status, visitor or tunnel
	Since    time.Time
	Until    time.Time
	Before   string // id of the request that the page ends before
	Limit    int    // at most 10,000
}

func (f RequestFilter) query(reveal bool) string {
	q := make(url.Values)
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("tunnel_id", f.TunnelID)
	set("kind", f.Kind)
	set("method", f.Method)
	set("status", f.Status)
	set("q", f.Text)
	set("since", timeText(f.Since))
	set("until", timeText(f.Until))
	set("before", f.Before)
	if f.Limit > 0 {
		set("limit", strconv.Itoa(f.Limit))
	}
	if reveal {
		set("reveal", "true")
	}
	return withQuery(q)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func withQuery(q url.Values) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Requests returns inspected requests and flows, newest first.
func (c *Client) Requests(ctx context.Context, f RequestFilter) ([]RequestSummary, error) {
	return list[RequestSummary](ctx, c, api+"/requests"+f.query(false))
}

// Request returns one request in full; reveal shows headers that hold secrets.
func (c *Client) Request(ctx context.Context, id string, reveal bool) (RequestDetail, error) {
	return get[RequestDetail](ctx, c, requestPath(id)+RequestFilter{}.query(reveal))
}

// Replay sends a request to the origin again, changed by edit, and returns the new one.
func (c *Client) Replay(ctx context.Context, id string, edit Replay) (RequestDetail, error) {
	return do[RequestDetail](ctx, c, http.MethodPost, requestPath(id)+replayPath, edit)
}

// ClearRequests removes everything that was inspected.
func (c *Client) ClearRequests(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, api+"/requests", nil, nil)
}

// ExportHAR writes the requests selected by f to w as an HTTP Archive 1.2.
func (c *Client) ExportHAR(ctx context.Context, w io.Writer, f RequestFilter, reveal bool) error {
	resp, err := c.send(ctx, http.MethodGet, api+"/requests.har"+f.query(reveal), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("copy the HTTP Archive: %w", err)
	}
	return nil
}

// ImportHAR adds the entries of an HTTP Archive of at most 1 MiB, and returns their number.
func (c *Client) ImportHAR(ctx context.Context, archive []byte) (int, error) {
	out, err := do[HARImport](ctx, c, http.MethodPost, api+"/requests.har", json.RawMessage(archive))
	return out.Added, err
}

// LogQuery selects lines of the daemon's log; its zero value selects the newest 200 at info or
// above.
type LogQuery struct {
	Level LogLevel
	Since time.Time
	Limit int
}

// Logs returns the daemon's recent log, oldest first.
func (c *Client) Logs(ctx context.Context, query LogQuery) ([]LogEntry, error) {
	q := make(url.Values)
	if query.Level != "" {
		q.Set("level", string(query.Level))
	}
	if !query.Since.IsZero() {
		q.Set("since", timeText(query.Since))
	}
	if query.Limit > 0 {
		q.Set("limit", strconv.Itoa(query.Limit))
	}
	return list[LogEntry](ctx, c, api+"/logs"+withQuery(q))
}

// Diagnose checks everything that a working tunnel needs.
func (c *Client) Diagnose(ctx context.Context) ([]Check, error) {
	out, err := do[struct {
		Items []Check `json:"items"`
	}](ctx, c, http.MethodPost, api+"/diagnostics", nil)
	return out.Items, err
}

// MeasureSpeed measures the speed of the path to the relay over both transports. It takes about ten
// seconds, and the bytes that it moves count as the client's traffic.
func (c *Client) MeasureSpeed(ctx context.Context) (SpeedReport, error) {
	return do[SpeedReport](ctx, c, http.MethodPost, api+"/speed", nil)
}

// LoginLink makes a link that signs in one browser, once. It must be kept secret.
func (c *Client) LoginLink(ctx context.Context) (LoginLink, error) {
	return do[LoginLink](ctx, c, http.MethodPost, api+"/login-links", nil)
}
