// Package client speaks to the adit daemon of this machine through its local API, to configure it,
// publish services and follow what happens. Its types are generated from openapi.yaml, which
// documents each of them.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

//go:generate go run ./internal/gen ../openapi.yaml types.go

// DefaultURL is the address of a daemon with the default settings.
const DefaultURL = "http://127.0.0.1:37271"

// maxAnswer bounds the size of one response.
const maxAnswer = 128 << 20

// Client talks to one daemon. Its methods may be called concurrently.
type Client struct {
	base   string
	bearer string
	agent  string
	http   *http.Client
}

// Option configures a Client.
type Option func(*Client)

// WithBearer sends token, for a daemon whose [local_api] bearer_token is set.
func WithBearer(token string) Option { return func(c *Client) { c.bearer = token } }

// WithUserAgent identifies the caller in the daemon's log.
func WithUserAgent(name string) Option { return func(c *Client) { c.agent = name } }

// New returns a client of the daemon at baseURL; if empty, DefaultURL. It does not connect yet.
func New(baseURL string, opts ...Option) *Client {
	if baseURL == "" {
		baseURL = DefaultURL
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), agent: "adit-client"}
	for _, opt := range opts {
		opt(c)
	}
	if c.http == nil {
		c.http = usual
	}
	return c
}

// usual is the http.Client of all Clients, which share its connections: creating a Client for every
// look at the daemon must not leave a connection behind each time.
var usual = &http.Client{
	Transport: &http.Transport{
		// No proxy: a daemon on this machine is never reached through one.
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// BaseURL returns the daemon's address, which is also that of its Web UI.
func (c *Client) BaseURL() string { return c.base }

// Error is a refusal by the daemon.
type Error struct {
	Status  int       // of HTTP
	Code    ErrorCode // for programs
	Message string    // for people
	Field   string    // the field at fault, if one is
	// RetryAfter is how long to wait before trying again; zero if the daemon did not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// IsCode reports whether err is a refusal by the daemon with this code.
func IsCode(err error, code ErrorCode) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ErrNotRunning is matched by errors that mean that no daemon answers.
var ErrNotRunning = errors.New("the adit daemon does not answer")

// Errors of the probe that match ErrNotRunning too, and mean that the daemon's address is not free
// either.
var (
	ErrSilent  = errors.New("something listens at the adit daemon's address, and does not answer")
	ErrForeign = errors.New("what answers at the adit daemon's address is another program")
)

// unreachable is an error of the connection to the daemon.
type unreachable struct {
	base string
	err  error
	kind error // ErrSilent, ErrForeign, or nil if nobody is there
}

func (u *unreachable) Error() string {
	switch {
	case u.Is(ErrSilent):
		return fmt.Sprintf("something listens at %s, and does not answer", u.base)
	case u.Is(ErrForeign):
		return fmt.Sprintf("what answers at %s is not an adit daemon", u.base)
	}
	return fmt.Sprintf("the adit daemon does not answer at %s: %v", u.base, u.err)
}

func (u *unreachable) Unwrap() error { return u.err }

func (u *unreachable) Is(target error) bool {
	return target == ErrNotRunning || u.kind != nil && target == u.kind
}

// call makes one request. in, if not nil, is sent as JSON; the content of the response's envelope
// is stored in out, if not nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.callWith(ctx, nil, method, path, in, out)
	return err
}

// answerTime is how long the daemon has for a complete response. It is longer than the daemon's own
// limit for anything but a replay, which takes as long as the local service does.
var answerTime = time.Minute // tests shorten it

const replayTime = 3 * time.Minute

// callWith is like call with request headers, and returns those of the response. It does not wait
// forever for a daemon that hangs: the error then matches ErrSilent.
func (c *Client) callWith(ctx context.Context, header http.Header, method, path string, in, out any) (http.Header, error) {
	limit := answerTime
	if strings.HasSuffix(path, replayPath) {
		limit = replayTime
	}
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answered, err := c.exchange(asking, header, method, path, in, out)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = &unreachable{base: c.base, err: err, kind: ErrSilent}
	}
	return answered, err
}

func (c *Client) exchange(ctx context.Context, header http.Header, method, path string, in, out any) (http.Header, error) {
	resp, err := c.send(ctx, method, path, in, header)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
		return resp.Header, c.lost(ctx, err)
	}
	envelope := struct {
		Data any `json:"data"`
	}{out}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&envelope); err != nil {
		var syntax *json.SyntaxError
		var mismatch *json.UnmarshalTypeError
		if !errors.As(err, &syntax) && !errors.As(err, &mismatch) { // the answer broke off
			return nil, c.lost(ctx, err)
		}
		return nil, fmt.Errorf("read the daemon's answer to %s %s: %w", method, path, err)
	}
	return resp.Header, nil
}

// send makes one request, and turns every refusal into an *Error.
func (c *Client) send(ctx context.Context, method, path string, in any, header http.Header) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("write the request %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request %s %s: %w", method, path, err)
	}
	maps.Copy(req.Header, header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", c.agent)
	if c.bearer != "" && path != healthPath { // the probe asks who is there: nobody who must know the token yet
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readError(resp)
}

// lost says that the daemon cannot be reached, unless the caller gave up.
func (c *Client) lost(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return &unreachable{base: c.base, err: err}
}

func readError(resp *http.Response) error {
	var answer struct {
		Error struct {
			Code    ErrorCode `json:"code"`
			Message string    `json:"message"`
			Field   string    `json:"field"`
		} `json:"error"`
	}
	err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer)
	if err != nil || answer.Error.Code == "" {
		// This is not our daemon, or something is in between.
		return &Error{Status: resp.StatusCode, Message: "the answer " + resp.Status + " is not of an adit daemon"}
	}
	e := &Error{
		Status: resp.StatusCode, Code: answer.Error.Code, Message: answer.Error.Message, Field: answer.Error.Field,
	}
	if seconds, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
		e.RetryAfter = seconds
	}
	return e
}

// get makes a GET request and returns the content of the envelope.
func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	return do[T](ctx, c, http.MethodGet, path, nil)
}

func do[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	var out T
	err := c.call(ctx, method, path, in, &out)
	return out, err
}

// list makes a GET request and returns the items in the envelope.
func list[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	out, err := get[struct {
		Items []T `json:"items"`
	}](ctx, c, path)
	return out.Items, err
}
