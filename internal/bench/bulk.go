package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// bulkLoad is bytes as fast as they go, from the origin or up to it.
type bulkLoad struct {
	face
	up         bool
	n          int // connections
	warm, each time.Duration
}

// bulk moves bytes over n connections until the time is up, and returns how many
// came to who reads them, the visitors or the origin, after the start.
func bulk(ctx context.Context, l bulkLoad) (int64, time.Duration, error) {
	var down atomic.Int64
	count := &down
	if l.up {
		count = &l.origin.received
	}
	begin := time.Now()
	end := begin.Add(l.warm + l.each)
	var wg sync.WaitGroup
	errs := make(chan error, l.n)
	for range l.n {
		wg.Go(func() {
			if err := l.move(ctx, end, &down); err != nil {
				errs <- err
			}
		})
	}
	time.Sleep(l.warm)
	before, since := count.Load(), time.Now()
	time.Sleep(time.Until(end))
	total, took := count.Load()-before, time.Since(since)
	wg.Wait()
	select {
	case err := <-errs:
		return 0, 0, err
	default:
		return total, took, nil
	}
}

// move is one connection's part, until end.
func (l bulkLoad) move(ctx context.Context, end time.Time, down *atomic.Int64) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.tcp)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(end.Add(10 * time.Second))
	const endless = int64(1) << 50
	if l.up {
		// What is not sent by the end is not the next figure's.
		conn.(*net.TCPConn).SetLinger(0)
		_, err = fmt.Fprintf(conn, "POST /up HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n", endless)
	} else {
		_, err = fmt.Fprintf(conn, "GET /down?size=%d HTTP/1.1\r\nHost: bench\r\n\r\n", endless)
	}
	for buffer := make([]byte, 256<<10); err == nil && time.Now().Before(end) && ctx.Err() == nil; {
		if l.up {
			_, err = conn.Write(buffer)
			continue
		}
		var n int
		n, err = conn.Read(buffer)
		down.Add(int64(n))
	}
	return err
}

// The load of small requests beside bulk: so many visitors, who wait for a
// moment after each answer.
const (
	besideVisitors = 10
	besidePause    = 20 * time.Millisecond
)

// measureBeside asks for little over a path and a session that bulk fills.
func measureBeside(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	for _, through := range []struct{ name, addr, host string }{{"tcp", f.tcp, ""}, {"http", f.http, f.host}} {
		name := through.name + " requests beside bulk"
		if !o.plan.beside || !o.wants(name) {
			continue
		}
		o.plan.settle(lab)
		var bytes int64
		var took time.Duration
		var bulkErr error
		var wg sync.WaitGroup
		times, _, err := requests(ctx, load{
			addr: through.addr, host: through.host, path: "/small", n: besideVisitors, each: o.each, pause: besidePause,
			begin: func() {
				wg.Go(func() { bytes, took, bulkErr = bulk(ctx, bulkLoad{face: f, n: 1, warm: o.plan.warm, each: o.each}) })
				time.Sleep(o.plan.warm)
			},
		})
		wg.Wait()
		if err := errors.Join(err, bulkErr); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.add(name+", p50", "ms", column, quantile(times, 0.5))
		t.add(name+", p99", "ms", column, quantile(times, 0.99))
		t.add(name+", bulk", "MB/s", column, float64(bytes)/1e6/took.Seconds())
	}
	return nil
}
