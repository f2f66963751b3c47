// Package control speaks the control plane with the relay on the streams of one session: what an
// agent reports and requests, what the relay answers, and what refusals and ends of sessions mean
// to people. When to send what is left to package agent; the messages are defined by package wire.
package control

import (
	"bufio"
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
	"slices"
	"strings"
	"time"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Limits for the relay's responses.
const (
	maxAnswer = 1 << 20
	maxEvent  = 256 << 10
	maxGrant  = 2048 // the texts of one: the state folder keeps them
)

// Client speaks the control plane on streams of one session.
type Client struct {
	session  link.Session
	client   http.Client
	pool     *http.Transport
	features []string // what the relay does, as its Welcome says
}

// New returns the client of a session that has not sent Hello yet.
func New(s link.Session) *Client {
	pool := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.OpenStream(ctx)
		},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
	}
	return &Client{session: s, pool: pool, client: http.Client{
		Transport:     pool,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close releases the streams kept for further requests. The Client may be used afterwards.
func (c *Client) Close() { c.pool.CloseIdleConnections() }

// call makes one request. in and out may be nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.callWith(ctx, nil, method, path, in, out)
	return err
}

// callWith is like call with headers of the request and of the response.
func (c *Client) callWith(ctx context.Context, header http.Header, method, path string, in, out any) (http.Header, error) {
	res, err := c.do(ctx, header, method, path, in)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the relay's answer to %s %s: %w", method, path, err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the relay's answer to %s %s is larger than %d bytes", method, path, maxAnswer)
	}
	if res.StatusCode/100 != 2 {
		return nil, problem(res.StatusCode, body)
	}
	if out == nil {
		return res.Header, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("the relay's answer to %s %s does not parse: %w", method, path, err)
	}
	return res.Header, nil
}

// do makes a JSON request, and returns the response as it arrives.
func (c *Client) do(ctx context.Context, header http.Header, method, path string, in any) (*http.Response, error) {
	if in == nil {
		return c.send(ctx, header, method, path, nil)
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // a claim's headers may be half of what the relay reads
	if err := enc.Encode(in); err != nil {
		return nil, err
	}
	with := maps.Clone(header)
	if with == nil {
		with = make(http.Header)
	}
	with.Set("Content-Type", "application/json")
	return c.send(ctx, with, method, path, &data)
}

func (c *Client) send(ctx context.Context, header http.Header, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://relay"+path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	res, err := c.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("ask the relay %s %s: %w", method, path, err)
	}
	return res, nil
}

// Hello introduces the agent. A Welcome for a client other than the one in h, which is
// there by its id or its name, is refused.
func (c *Client) Hello(ctx context.Context, h wire.Hello) (wire.Welcome, error) {
	var w wire.Welcome
	if err := c.call(ctx, http.MethodPost, wire.PathHello, h, &w); err != nil {
		return w, err
	}
	if h.ClientID != "" && h.ClientID != w.ClientID && !strings.EqualFold(h.ClientID, w.ClientName) {
		return w, &wire.Problem{
			Code: wire.CodeForbidden, Field: "client_id",
			Message: fmt.Sprintf("the token belongs to the client %s, not to %s", refusal.Clip(w.ClientID), h.ClientID),
		}
	}
	c.features = w.Features
	return w, nil
}

// Can reports whether the relay supports a feature. It may be called after Hello.
func (c *Client) Can(feature string) bool { return slices.Contains(c.features, feature) }

// Release gives a claim back. With keep, only its endpoint ends: the name and the port stay the
// client's. A claim that does not exist counts as released.
func (c *Client) Release(ctx context.Context, key string, keep bool) error {
	if keep {
		return c.release(ctx, key, "?keep=1")
	}
	return c.release(ctx, key, "")
}

// Forgo gives back the claim of a tunnel that is to get a different name or port.
func (c *Client) Forgo(ctx context.Context, key string) error { return c.release(ctx, key, "?move=1") }

func (c *Client) release(ctx context.Context, key, how string) error {
	err := c.call(ctx, http.MethodDelete, wire.PathClaims+url.PathEscape(key)+how, nil, nil)
	var no *refused
	if errors.As(err, &no) && no.status == http.StatusNotFound {
		return nil
	}
	return err
}

func (c *Client) report(ctx context.Context, list []wire.AgentError) error {
	return c.call(ctx, http.MethodPost, wire.PathErrors, list, nil)
}

// Ping reports whether the relay answers now, whatever the answer is.
func (c *Client) Ping(ctx context.Context) error {
	err := c.report(ctx, []wire.AgentError{})
	var no *refused
	if errors.As(err, &no) {
		return nil
	}
	return err
}

// accessLine is the beginning of an event about a visitor's request, which older relays send
// unasked. The inspector already knows about the request, and a busy tunnel has too many of them to
// read.
var accessLine = []byte(`{"type":"` + wire.EventAccess + `"`)

// Events calls handle with each event, except those of visitors' requests, until the stream ends.
func (c *Client) Events(ctx context.Context, handle func(wire.Event)) error {
	res, err := c.do(ctx, nil, http.MethodGet, wire.PathEvents+"?"+wire.ParamAccess+"="+wire.AccessNone, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return problem(res.StatusCode, body)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) == 0 || bytes.HasPrefix(line, accessLine) {
			continue
		}
		var e wire.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("an event of the relay does not parse: %w", err)
		}
		e.Reason = Clip(e.Reason)
		handle(e)
	}
	return lines.Err()
}
