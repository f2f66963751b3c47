package visitor

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const staying = 2 * time.Second

// ended is a connection whose peer sends no more; its writes take as long as
// they are let.
type ended struct {
	net.Conn
	taken chan struct{}
}

func (e ended) Read([]byte) (int, error)        { return 0, io.EOF }
func (e ended) Write(b []byte) (int, error)     { <-e.taken; return len(b), nil }
func (e ended) SetReadDeadline(time.Time) error { return nil }
func (e ended) SetDeadline(time.Time) error     { return nil }
func (e ended) Close() error                    { return nil }

// staysFor has http.Server read while it serves, and returns how long the
// visitor counted as there.
func staysFor(t *testing.T, meanwhile func(*halfOpen, ended)) (took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		peer := ended{taken: make(chan struct{})}
		c := &halfOpen{Conn: &Conn{Conn: peer, leave: func() {}}, staying: staying}
		var wg sync.WaitGroup
		wg.Go(func() { meanwhile(c, peer) })
		start := time.Now()
		_, err = c.Read(make([]byte, 1))
		took = time.Since(start)
		close(peer.taken)
		wg.Wait()
	})
	return took, err
}

func TestVisitorStaysThoughItSendsNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*halfOpen, ended)
		from, to  time.Duration
		want      error
	}{
		"nothing is sent": {func(*halfOpen, ended) {}, staying, staying, io.EOF},
		"much is sent": {func(c *halfOpen, peer ended) {
			for range 20 {
				go c.Write([]byte("part"))
				peer.taken <- struct{}{}
				time.Sleep(staying / 2)
			}
		}, 10 * staying, 12 * staying, io.EOF},
		"a part is taken slowly": {func(c *halfOpen, peer ended) {
			go c.Write([]byte("part"))
			time.Sleep(10 * staying)
			peer.taken <- struct{}{}
		}, 10 * staying, 12 * staying, io.EOF},
		"the request is served": {func(c *halfOpen, _ ended) {
			time.Sleep(staying / 2)
			_ = c.SetReadDeadline(time.Unix(1, 0))
		}, staying / 2, staying / 2, os.ErrDeadlineExceeded},
		"a deadline comes": {func(c *halfOpen, _ ended) { _ = c.SetDeadline(time.Now().Add(staying / 4)) }, staying / 4, staying / 4, os.ErrDeadlineExceeded},
		"a deadline is taken back": {func(c *halfOpen, _ ended) {
			_ = c.SetReadDeadline(time.Now().Add(staying / 4))
			time.Sleep(staying / 8)
			_ = c.SetReadDeadline(time.Time{})
		}, staying, staying, io.EOF},
		"it is closed": {func(c *halfOpen, _ ended) {
			time.Sleep(staying / 2)
			_ = c.Close()
		}, staying / 2, staying / 2, net.ErrClosed},
	} {
		took, err := staysFor(t, c.meanwhile)
		if took < c.from || took > c.to || !errors.Is(err, c.want) {
			t.Errorf("%s: %v after %v, want %v after %v to %v", name, err, took, c.want, c.from, c.to)
		}
	}
}

func TestEndBetweenRequestsIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &halfOpen{Conn: &Conn{Conn: ended{}, leave: func() {}}, staying: staying}
		start := time.Now()
		if _, err := c.Read(make([]byte, 4096)); !errors.Is(err, io.EOF) || time.Since(start) > 0 {
			t.Errorf("got %v after %v, want the end at once", err, time.Since(start))
		}
	})
}
