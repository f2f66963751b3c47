package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// measure fills one column of the table. lab is nil for the direct path.
func measure(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	each := o.each
	for _, kind := range []struct {
		name string
		up   bool
		n    int
	}{{"down x1", false, 1}, {"down x8", false, 8}, {"up x1", true, 1}, {"up x8", true, 8}} {
		if !o.only.MatchString("tcp " + kind.name) {
			continue
		}
		lab.settle()
		before := lab.cpu()
		bytes, took, err := bulk(ctx, f.tcp, kind.up, kind.n, each)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		t.add("tcp "+kind.name, "MB/s", column, float64(bytes)/1e6/took.Seconds())
		if lab != nil {
			t.add("tcp "+kind.name+", CPU of relay and agent", "ns/B", column, float64(lab.cpu()-before)/float64(bytes))
		}
	}
	for _, through := range []struct{ name, addr, host string }{{"tcp", f.tcp, ""}, {"http", f.http, f.host}} {
		for _, n := range []int{1, 64} {
			name := fmt.Sprintf("%s requests x%d", through.name, n)
			if !o.only.MatchString(name) {
				continue
			}
			lab.settle()
			before := lab.cpu()
			times, err := requests(ctx, through.addr, "/small", through.host, n, each, false)
			if err != nil {
				return fmt.Errorf("%s requests: %w", through.name, err)
			}
			t.add(name, "req/s", column, float64(len(times))/each.Seconds())
			t.add(name+", p50", "ms", column, quantile(times, 0.5))
			t.add(name+", p99", "ms", column, quantile(times, 0.99))
			if lab != nil {
				t.add(name+", CPU of relay and agent", "µs/req", column, float64((lab.cpu()-before).Microseconds())/float64(len(times)))
			}
		}
		if !o.only.MatchString(through.name + " new connections") {
			continue
		}
		lab.settle()
		before := lab.cpu()
		times, err := requests(ctx, through.addr, "/small", through.host, 16, each, true)
		if err != nil {
			return fmt.Errorf("%s new connections: %w", through.name, err)
		}
		t.add(through.name+" new connections", "1/s", column, float64(len(times))/each.Seconds())
		if lab != nil {
			t.add(through.name+" new connections, CPU of relay and agent", "µs each", column, float64((lab.cpu()-before).Microseconds())/float64(len(times)))
		}
	}
	if !o.only.MatchString("udp") {
		return nil
	}
	sent, came, times, err := datagrams(ctx, f.udp, 10_000, each)
	if err != nil {
		return err
	}
	t.add("udp 10,000/s, lost", "%", column, 100*float64(sent-came)/float64(sent))
	t.add("udp 10,000/s, p99", "ms", column, quantile(times, 0.99))
	lab.settle()
	before := lab.cpu()
	_, came, _, err = datagrams(ctx, f.udp, 0, each)
	if err != nil {
		return err
	}
	t.add("udp at most, echoed", "1/s", column, float64(came)/each.Seconds())
	if lab != nil {
		t.add("udp at most, CPU of relay and agent", "µs each", column, float64((lab.cpu()-before).Microseconds())/float64(came))
	}
	return nil
}

// cpu is that of both processes; zero on the direct path.
func (l *lab) cpu() time.Duration {
	if l == nil {
		return 0
	}
	return l.relay.cpu() + l.agent.cpu()
}

// settle waits until both processes rest: an upload that was cut off still
// drains, and must not count as the next figure's.
func (l *lab) settle() {
	for i, before := 0, l.cpu(); l != nil && i < 50; i++ {
		time.Sleep(100 * time.Millisecond)
		now := l.cpu()
		if now-before <= 10*time.Millisecond {
			return
		}
		before = now
	}
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

// measureIdleVisitors holds 1,000 connections through the tcp tunnel.
func measureIdleVisitors(ctx context.Context, t *table, column string, f face, lab *lab) error {
	const visitors = 1000
	before := lab.relay.memory() + lab.agent.memory()
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range visitors {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.tcp)
		if err != nil {
			return err
		}
		conns = append(conns, conn)
		fmt.Fprint(conn, "GET /small HTTP/1.1\r\nHost: bench\r\n\r\n")
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	after := lab.relay.memory() + lab.agent.memory()
	t.add("memory of an idle visitor, relay and agent", "kB", column, float64(after-before)/1e3/visitors)
	return nil
}
