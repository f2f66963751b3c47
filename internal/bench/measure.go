package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// measurement adds some figures to one column of the table. lab is nil for the
// direct path.
type measurement func(ctx context.Context, t *table, column string, f face, lab *lab, o options) error

// plan is how much of each kind of load there is.
type plan struct {
	// warm is how long bulk goes on before it counts, and drain how long what is
	// under way then is given.
	warm, drain time.Duration
	visitors    []int
	thousands   int // of datagrams a second
	// flood has as many datagrams as go, too.
	flood bool
	// beside has small requests beside bulk.
	beside bool
}

var (
	loopbackPlan = plan{visitors: []int{1, 64, 1000}, thousands: 10, flood: true}
	// pathPlan has time for a congestion control to find its rate, and queues
	// that empty.
	pathPlan = plan{warm: 2 * time.Second, drain: 500 * time.Millisecond, visitors: []int{1, 64}, thousands: 1, beside: true}
)

// settle waits for the end of what was measured before.
func (p plan) settle(lab *lab) {
	time.Sleep(p.drain)
	lab.settle()
}

// measure fills one column of the table. lab is nil for the direct path.
func measure(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	for _, part := range []measurement{measureBulk, measureRequests, measureDatagrams, measureBeside} {
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
		if f.noBulk || !o.wants(kind.name) {
			continue
		}
		o.plan.settle(lab)
		begun := lab.begin()
		bytes, took, err := bulk(ctx, bulkLoad{face: f, up: kind.up, n: kind.n, warm: o.plan.warm, each: o.each})
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
		if through.addr == "" {
			continue
		}
		for _, n := range o.plan.visitors {
			name := fmt.Sprintf("%s requests x%d", through.name, n)
			if !o.wants(name, "visitors") {
				continue
			}
			o.plan.settle(lab)
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
		o.plan.settle(lab)
		begun := lab.begin()
		times, took, err := requests(ctx, load{addr: through.addr, host: through.host, path: "/small", n: 16, each: o.each, fresh: true})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.add(name, "1/s", column, float64(len(times))/took.Seconds())
		t.add(name+", p50", "ms", column, quantile(times, 0.5))
		t.add(name+", p99", "ms", column, quantile(times, 0.99))
		begun.each(t, name, "µs each", column, float64(len(times)))
	}
	return nil
}

func measureDatagrams(ctx context.Context, t *table, column string, f face, lab *lab, o options) error {
	if f.udp == "" || !o.wants("udp") {
		return nil
	}
	o.plan.settle(lab)
	sent, came, times, err := datagrams(ctx, f.udp, 1000*o.plan.thousands, o.each)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("udp %d,000/s", o.plan.thousands)
	t.add(name+", lost", "%", column, 100*float64(sent-came)/float64(sent))
	t.add(name+", p50", "ms", column, quantile(times, 0.5))
	t.add(name+", p99", "ms", column, quantile(times, 0.99))
	if !o.plan.flood {
		return nil
	}
	o.plan.settle(lab)
	begun := lab.begin()
	_, came, _, err = datagrams(ctx, f.udp, 0, o.each)
	if err != nil {
		return err
	}
	t.add("udp at most, echoed", "1/s", column, float64(came)/o.each.Seconds())
	begun.each(t, "udp at most", "µs each", column, float64(came))
	return nil
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
	for end := time.Now().Add(time.Second); int(received.Load()) < sent && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // some are under way, or lost
	}
	conn.SetReadDeadline(time.Now())
	<-done
	return sent, int(received.Load()), times, nil
}
