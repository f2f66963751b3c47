package relay

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"adit/tunnel/wire"
)

// TestRequestsOfAnAddressAreBounded uses a stranger whose few connections have as many
// requests in progress as allowed, each with the largest allowed head.
func TestRequestsOfAnAddressAreBounded(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = 4 // and so 32 requests
	var held atomic.Int32
	s := startSite(t, cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			held.Add(1)
			defer held.Add(-1)
			<-r.Context().Done()
		}
	}))
	try := func(c *http.Client, url, field string) (int, string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		req.Header.Set("X-Field", field)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	second := s.testRelay.visitor(t)
	second.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	for version, visitor := range map[string]*http.Client{"HTTP/2": second, "HTTP/3": s.visitor3(t)} {
		for size, many := range map[int]int{1: 32, 40_000: 10} {
			field := strings.Repeat("x", size)
			try(visitor, s.https, field) // there is a connection, or each would open one
			ctx, end := context.WithCancel(t.Context())
			var holding sync.WaitGroup
			for range many {
				holding.Go(func() {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.https+"/hold", nil)
					req.Header.Set("X-Field", field)
					for {
						resp, err := visitor.Do(req)
						if err != nil {
							return
						}
						resp.Body.Close()
						if resp.StatusCode != http.StatusTooManyRequests {
							t.Errorf("%s, %d bytes: status %d of a request that is held", version, size, resp.StatusCode)
							return
						}
						// A place is given back a moment after the answer, and the one before may have it.
					}
				})
			}
			eventually(t, "the requests are under way", func() bool { return held.Load() == int32(many) })
			if status, again := try(visitor, s.https, field); status != http.StatusTooManyRequests || again == "" {
				t.Errorf("%s, %d bytes: status %d of one more, to be tried again after %q s", version, size, status, again)
			}
			if status, _ := try(s.visitor, s.http, field); status != http.StatusOK {
				t.Errorf("%s, %d bytes: status %d by HTTP/1.1, which has a connection for each", version, size, status)
			}
			end()
			holding.Wait()
			eventually(t, "their places are given back", func() bool {
				status, _ := try(visitor, s.https, field)
				return status == http.StatusOK && s.edge.Visitors()[wire.TypeHTTPS] == 0
			})
		}
	}
}

// outcomes counts how the next n streams begin to be answered: by a status, or with a
// reset.
func (c *http2Conn) outcomes(t *testing.T, n int, got map[string]int) {
	t.Helper()
	dec := hpack.NewDecoder(4096, nil)
	for ended := 0; ended < n; {
		f, err := c.framer.ReadFrame()
		if err != nil {
			t.Fatalf("%v, after %v", err, got)
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			fields, err := dec.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				t.Fatal(err)
			}
			got[fields[0].Value]++
			ended++
		case *http2.RSTStreamFrame:
			got["reset"]++
			ended++
		}
	}
}

// TestAnswersThatNobodyTakesAreBounded uses a stranger that reads no byte of any answer.
// The answers are small, so their handlers are done with them, and only net/http holds
// them.
func TestAnswersThatNobodyTakesAreBounded(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = 4 // and so 32 requests, and as many whose answers nobody takes
	s := startSite(t, cfg, text("served"))
	const each, most = 100, 32
	got := map[string]int{}
	for range 2 {
		c := dialHTTP2(t, s)
		defer c.Close()
		c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for i := range each {
			c.headers(uint32(2*i+1), true, request("/")...)
		}
		c.outcomes(t, each, got)
	}
	if got["200"] > 2*most || got["200"] < most || got["reset"] < 2*each-2*most-most/8-1 {
		t.Errorf("of %d requests: %v, want %d served at most, and the rest reset but for a few refusals", 2*each, got, 2*most)
	}
}

// TestRefusalsThatNobodyTakesAreBounded uses a stranger that reads no byte of any answer,
// so that all answers wait, including those that say that there are too many. Each head
// counts for two.
func TestRefusalsThatNobodyTakesAreBounded(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = 4
	s := startSite(t, cfg, text("served"))
	c := dialHTTP2(t, s)
	defer c.Close()
	c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	const asked, under, refused = 60, 16, 2
	for i := range asked {
		c.headers(uint32(2*i+1), true, append(request("/"), hpack.HeaderField{Name: "x-field", Value: strings.Repeat("a", 17_000)})...)
	}
	got := map[string]int{}
	c.outcomes(t, asked, got)
	if got["200"] != under || got["429"] != refused || got["reset"] != asked-under-refused {
		t.Errorf("of %d requests: %v, want %d served, %d refused and the rest reset", asked, got, under, refused)
	}
}
