package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// measurement adds some figures to one column of the table. lab is nil for the
// direct path.
type measurement func(ctx context.Context, t *table, column string, f face, lab *lab, o options) error

// measure fills one column of the table. lab is nil for the direct path.
func measure(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	for _, part := range []measurement{measureBulk, measureRequests, measureDatagrams} {
		if err := part(ctx, t, column, f, lab, o); err != nil {
			return err
		}
	}
	return nil
}

func measureBulk(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	for _, kind := range []struct {
		name string
		up   bool
		n    int
	}{{"tcp down x1", false, 1}, {"tcp down x8", false, 8}, {"tcp up x1", true, 1}, {"tcp up x8", true, 8}} {
		if !o.wants(kind.name) {
			continue
		}
		lab.settle()
		begun := lab.begin()
		bytes, took, err := bulk(ctx, f.tcp, kind.up, kind.n, o.each)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		t.add(kind.name, "MB/s", column, float64(bytes)/1e6/took.Seconds())
		begun.each(t, kind.name, "ns/B", column, float64(bytes))
	}
	return nil
}

// measureRequests has visitors who keep their connections, few and many, and
// such who come anew for each request.
func measureRequests(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	for _, through := range []struct{ name, addr, host string }{{"tcp", f.tcp, ""}, {"http", f.http, f.host}} {
		for _, n := range []int{1, 64, 1000} {
			name := fmt.Sprintf("%s requests x%d", through.name, n)
			if !o.wants(name, "visitors") {
				continue
			}
			lab.settle()
			var begun cost
			times, took, err := requests(ctx, load{
				addr: through.addr, host: through.host, path: "/small", n: n, each: o.each,
				begin: func() { begun = lab.begin() },
			})
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			t.add(name, "req/s", column, float64(len(times))/took.Seconds())
			t.add(name+", p50", "ms", column, quantile(times, 0.5))
			t.add(name+", p99", "ms", column, quantile(times, 0.99))
			begun.each(t, name, "µs/req", column, float64(len(times)))
		}
		name := through.name + " new connections"
		if !o.wants(name, "visitors") {
			continue
		}
		lab.settle()
		begun := lab.begin()
		times, took, err := requests(ctx, load{addr: through.addr, host: through.host, path: "/small", n: 16, each: o.each, fresh: true})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.add(name, "1/s", column, float64(len(times))/took.Seconds())
		begun.each(t, name, "µs each", column, float64(len(times)))
	}
	return nil
}

func measureDatagrams(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	if !o.wants("udp") {
		return nil
	}
	sent, came, times, err := datagrams(ctx, f.udp, 10_000, o.each)
	if err != nil {
		return err
	}
	t.add("udp 10,000/s, lost", "%", column, 100*float64(sent-came)/float64(sent))
	t.add("udp 10,000/s, p99", "ms", column, quantile(times, 0.99))
	lab.settle()
	begun := lab.begin()
	_, came, _, err = datagrams(ctx, f.udp, 0, o.each)
	if err != nil {
		return err
	}
	t.add("udp at most, echoed", "1/s", column, float64(came)/o.each.Seconds())
	begun.each(t, "udp at most", "µs each", column, float64(came))
	return nil
}

// bulk moves bytes over n connections until the time is up.
func bulk(ctx context.Context, addr string, up bool, n int, each time.Duration) (int64, time.Duration, error) {
	var total atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, n)
	begin := time.Now()
	end := begin.Add(each)
	for range n {
		wg.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				errs <- err
				return
			}
			defer conn.Close()
			if up {
				fmt.Fprintf(conn, "POST /up HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n", int64(1)<<50)
			} else {
				fmt.Fprintf(conn, "GET /down?size=%d HTTP/1.1\r\nHost: bench\r\n\r\n", int64(1)<<50)
			}
			conn.SetDeadline(end.Add(5 * time.Second))
			buffer := make([]byte, 256<<10)
			for time.Now().Before(end) {
				var m int
				if up {
					m, err = conn.Write(buffer)
				} else {
					m, err = conn.Read(buffer)
				}
				total.Add(int64(m))
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	select {
	case err := <-errs:
		return 0, 0, err
	default:
	}
	return total.Load(), took, nil
}

// datagrams sends rate datagrams a second (as many as go, with 256 under way, if
// zero) to an echo and returns how many went and came and their times.
func datagrams(ctx context.Context, addr string, rate int, each time.Duration) (sent, came int, times []time.Duration, err error) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return 0, 0, nil, err
	}
	defer conn.Close()
	conn.(*net.UDPConn).SetReadBuffer(8 << 20)
	var received atomic.Int64
	room := make(chan struct{}, 256)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 2048)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if n >= 8 {
				times = append(times, time.Duration(time.Now().UnixNano()-int64(binary.LittleEndian.Uint64(buffer))))
			}
			received.Add(1)
			select {
			case <-room:
			default:
			}
		}
	}()
	message := make([]byte, 200)
	begin := time.Now()
	for time.Since(begin) < each && ctx.Err() == nil {
		if rate > 0 {
			if due := int(time.Since(begin).Seconds() * float64(rate)); sent >= due {
				time.Sleep(200 * time.Microsecond)
				continue
			}
		} else {
			select {
			case room <- struct{}{}:
			case <-time.After(20 * time.Millisecond): // one was lost: its room is free again
				select {
				case <-room:
				default:
				}
				continue
			}
		}
		binary.LittleEndian.PutUint64(message, uint64(time.Now().UnixNano()))
		if _, err := conn.Write(message); err == nil {
			sent++
		}
	}
	conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	<-done
	return sent, int(received.Load()), times, nil
}
