package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// visitor is one connection that asks for the same thing again and again. It
// does no more than it must to know where an answer ends.
type visitor struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
}

func requestFor(path, host string, fresh bool) []byte {
	if host == "" {
		host = "bench"
	}
	last := ""
	if fresh {
		last = "Connection: close\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n%s\r\n", path, host, last)
}

func dialVisitor(ctx context.Context, addr string, request []byte) (*visitor, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &visitor{conn: conn, r: bufio.NewReaderSize(conn, 4<<10), request: request}, nil
}

// ask makes one request and reads its answer.
func (v *visitor) ask() error {
	v.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := v.conn.Write(v.request); err != nil {
		return err
	}
	line, err := v.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("got %q", line)
	}
	length := -1
	for {
		line, err := v.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("the answer has no length")
	}
	for length > 0 {
		n, err := v.r.Discard(min(length, 4<<10))
		if err != nil {
			return err
		}
		length -= n
	}
	return nil
}

// load is what visitors do at once.
type load struct {
	addr, host, path string
	n                int // visitors
	each             time.Duration
	fresh            bool          // each request has a connection of its own
	pause            time.Duration // of a visitor after an answer
	begin            func()        // called once all visitors are there, each with an answer; may be nil
}

// requests asks until the time is up, and returns how long each answer took,
// and all of it. Visitors who keep their connections are let in and served once
// before the time begins.
func requests(ctx context.Context, l load) ([]time.Duration, time.Duration, error) {
	request := requestFor(l.path, l.host, l.fresh)
	visitors := make([]*visitor, l.n)
	defer func() {
		for _, v := range visitors {
			if v != nil {
				v.conn.Close()
			}
		}
	}()
	for i := range visitors {
		if l.fresh {
			break
		}
		v, err := dialVisitor(ctx, l.addr, request)
		if err != nil {
			return nil, 0, err
		}
		visitors[i] = v
		if err := v.ask(); err != nil {
			return nil, 0, err
		}
	}
	if l.begin != nil {
		l.begin()
	}
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	begun := time.Now()
	end := begun.Add(l.each)
	for _, v := range visitors {
		wg.Go(func() {
			times, err := v.askUntil(ctx, l, request, end)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return all, time.Since(begun), failed
}

// askUntil asks again and again; a nil visitor comes anew each time.
func (v *visitor) askUntil(ctx context.Context, l load, request []byte, end time.Time) (times []time.Duration, err error) {
	for begin := time.Now(); begin.Before(end) && ctx.Err() == nil; begin = time.Now() {
		now := v
		if now == nil {
			if now, err = dialVisitor(ctx, l.addr, request); err != nil {
				return times, err
			}
		}
		err = now.ask()
		if v == nil {
			now.conn.Close()
		}
		if err != nil {
			return times, err
		}
		times = append(times, time.Since(begin))
		if l.pause > 0 {
			time.Sleep(l.pause)
		}
	}
	return times, nil
}

func quantile(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return float64(times[min(len(times)-1, int(q*float64(len(times))))].Nanoseconds()) / 1e6
}

// download reads size bytes of one answer after another until the time is up
// and returns how many came.
func download(ctx context.Context, addr, host string, size int64, each time.Duration) (total int64, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	request := requestFor(fmt.Sprintf("/down?size=%d", size), host, false)
	r := bufio.NewReaderSize(conn, 4<<10)
	buffer := make([]byte, 256<<10)
	for end := time.Now().Add(each); time.Now().Before(end); {
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := conn.Write(request); err != nil {
			return total, err
		}
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return total, err
			}
			if len(line) <= 2 {
				break
			}
		}
		for left := size; left > 0; {
			n, err := r.Read(buffer[:min(left, int64(len(buffer)))])
			if err != nil && err != io.EOF || n == 0 {
				return total, fmt.Errorf("%d bytes are missing: %w", left, err)
			}
			left -= int64(n)
			total += int64(n)
		}
	}
	return total, nil
}
