package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// lasting is a relay whose access events arrive after a while, unless the reader has gone
// by then.
type lasting struct {
	*fakeRelay
	wait time.Duration
}

func (l lasting) later(ctx context.Context) error {
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lasting) FollowAccess(ctx context.Context, _ Access, give func([]wire.Access, int) error) error {
	if err := give(nil, 0); err != nil {
		return err
	}
	if err := l.later(ctx); err != nil {
		return err
	}
	return give([]wire.Access{fakeVisit}, 0)
}

func (l lasting) ExportAccess(ctx context.Context, _ Access, give func(*wire.Access) error) error {
	if err := l.later(ctx); err != nil {
		return err
	}
	e := fakeVisit
	return give(&e)
}

func TestStreamsOutliveTheTimeForReadingARequest(t *testing.T) {
	const reading = 2 * time.Second
	c, err := New(Config{Relay: lasting{&fakeRelay{}, reading + 500*time.Millisecond}, Keeper: newMemory(), AdminToken: testToken})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(c)
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout = time.Minute, reading
	server.Start()
	t.Cleanup(server.Close)
	for _, path := range []string{"/api/v1/access/live", "/api/v1/access/export"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+testToken)
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			found := false
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				found = found || strings.Contains(lines.Text(), fakeVisit.Visitor)
			}
			if !found {
				t.Errorf("the answer (status %d) ended before its event came", resp.StatusCode)
			}
		})
	}
}

// watched reports when an account is read.
type watched struct {
	*memory
	read chan string
}

func (w watched) Get(key string) ([]byte, uint64, bool) {
	value, rev, ok := w.memory.Get(key)
	if ok && strings.HasPrefix(key, accountPrefix) {
		select {
		case w.read <- key:
		default:
		}
	}
	return value, rev, ok
}

func TestPasswordThatIsChangedWhileItIsTriedSignsNobodyIn(t *testing.T) {
	r := serve(t)
	r.owner()
	keep := watched{r.keep, make(chan string, 1)}
	r.cfg.Keeper = keep
	for range hashesAtOnce { // what is tried waits
		r.hashes.slots <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		_, err := r.prove(ctx, "ann", testPass, "")
		got <- err
	}()
	<-keep.read
	if _, err := r.change(ctx, "ann", func(a *record) error { a.Hash = "another"; return nil }); err != nil {
		t.Fatal(err)
	}
	for range hashesAtOnce {
		<-r.hashes.slots
	}
	if err := <-got; err != errLogin {
		t.Errorf("got %v from the password before, want %v", err, errLogin)
	}
}
