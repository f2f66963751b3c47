package dnsapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"adit/internal/buildinfo"
)

const (
	callFor    = 15 * time.Second // one request
	maxAnswer  = 1 << 20
	maxSaid    = 300 // in characters, of a host's message
	maxTries   = 4
	firstPause = time.Second
	mostPause  = 30 * time.Second // the longest pause that a host may ask for
	maxPages   = 200
)

// api sends requests to a host's API.
type api struct {
	endpoint *url.URL
	client   *http.Client
	agent    string
	hide     func(text string) string // removes secrets from a text
	now      func() time.Time
	pause    func(ctx context.Context, d time.Duration) error
	turn     chan struct{} // holds one token
}

// alone runs do while no other change by this node is in progress, so that paged lists
// stay consistent.
func (a *api) alone(ctx context.Context, do func() error) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
		return do()
	case <-ctx.Done():
		return fmt.Errorf("ask %s: others are still being served: %w", a.endpoint.Host, ctx.Err())
	}
}

var endpoints = map[string]string{
	Cloudflare: "https://api.cloudflare.com/client/v4",
	Route53:    "https://route53.amazonaws.com",
	AliDNS:     "https://alidns.aliyuncs.com",
	DNSPod:     "https://dnsapi.cn",
}

func newAPI(cfg Config) (*api, error) {
	endpoint := cfg.Endpoint
	if endpoint == "" {
		endpoint = endpoints[cfg.Provider]
	}
	u, err := url.Parse(strings.TrimSuffix(endpoint, "/"))
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: callFor,
		DisableKeepAlives:      true, // it is used a few times in weeks
		MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12},
	}
	secret := cfg.Secret
	return &api{
		endpoint: u, now: time.Now, pause: pause, turn: make(chan struct{}, 1),
		agent: "adit/" + strings.TrimPrefix(buildinfo.Get().Version, "v"),
		hide:  func(text string) string { return strings.ReplaceAll(text, secret, "[hidden]") },
		client: &http.Client{
			Transport: transport, Timeout: callFor,
			// Credentials go only to the endpoint.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// url returns the endpoint's URL, extended by a path and a query.
func (a *api) url(path string, query url.Values) string {
	u := *a.endpoint
	u.Path += path
	u.RawQuery = encode(query)
	return u.String()
}

// encode encodes a query according to RFC 3986, as signatures require.
func encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// answer is a host's answer.
type answer struct {
	status int
	body   []byte
}

// call sends the request that request creates anew for each attempt. It retries if there
// is no answer, for 429 and 5xx, and if busy says so; busy may be nil. Sending the
// request twice must do no harm.
func (a *api) call(ctx context.Context, request func() (*http.Request, error), busy func(answer) bool) (answer, error) {
	for try := 1; ; try++ {
		req, err := request()
		if err != nil {
			return answer{}, fmt.Errorf("ask %s: %w", a.endpoint.Host, err)
		}
		got, after, err := a.once(ctx, req)
		again := err != nil && !errors.Is(err, errTooLong) || err == nil && (got.status == http.StatusTooManyRequests || got.status >= 500 || busy != nil && busy(got))
		if !again || ctx.Err() != nil || try == maxTries {
			return got, err
		}
		if after > mostPause {
			return got, fmt.Errorf("ask %s: it wants to be left alone for %v (HTTP %d)", a.endpoint.Host, after, got.status)
		}
		if after == 0 {
			after = firstPause << (try - 1)
		}
		if err := a.pause(ctx, after); err != nil {
			return got, fmt.Errorf("ask %s: no answer of use in time: %w", a.endpoint.Host, err)
		}
	}
}

var errTooLong = errors.New("the answer is longer than 1 MiB")

func (a *api) once(ctx context.Context, req *http.Request) (got answer, after time.Duration, err error) {
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", a.agent)
	}
	resp, err := a.client.Do(req.WithContext(ctx))
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which contains a query
		}
		return answer{}, 0, fmt.Errorf("ask %s: %w", a.endpoint.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errTooLong
	}
	if ctx.Err() != nil { // what arrived then may be cut off without an error
		err = ctx.Err()
	}
	if err != nil {
		return answer{}, 0, fmt.Errorf("ask %s: %w", a.endpoint.Host, err)
	}
	return answer{resp.StatusCode, body}, a.retryAfter(resp.Header.Get("Retry-After")), nil
}

// retryAfter parses the header of RFC 9110, section 10.2.3: seconds or a date. It returns
// zero if the value is not usable.
func (a *api) retryAfter(text string) time.Duration {
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(a.now())).Round(time.Second)
}

// refused is a refusal by a host.
type refused struct {
	status        int
	code, message string
}

func (e *refused) Error() string {
	text := fmt.Sprintf("it refuses with HTTP %d", e.status)
	if e.code != "" {
		text += ", code " + e.code
	}
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// refuse returns an error with a host's message, which may contain anything.
func (a *api) refuse(status int, code, message string) error {
	return &refused{status, a.said(code), a.said(message)}
}

func (a *api) said(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, a.hide(text))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxSaid {
		text = string(runes[:maxSaid]) + "…"
	}
	return text
}

// unreadable is the error for an answer that is not in the expected format.
func (a *api) unreadable(status int, err error) error {
	return a.refuse(status, "", "the answer cannot be read: "+err.Error())
}

// isCode reports whether err is a host's refusal with one of codes.
func isCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*refused](err)
	if !ok {
		return false
	}
	return slices.Contains(codes, e.code)
}

// errNoZone says that the credentials give no access to the zone.
func errNoZone(needs string) error {
	return fmt.Errorf("the account has no such zone that these credentials may see: %s", needs)
}
