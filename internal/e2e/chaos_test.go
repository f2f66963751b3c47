package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/require"
)

// TestChaos kills, pauses and restarts both sides at random under load, for
// ADIT_CHAOS (20 s in a strict run). Every byte that arrives is checked, and after
// each fault every tunnel must answer at the URL it had. ADIT_CHAOS_SEED repeats
// a run's faults.
func TestChaos(t *testing.T) {
	length, seed := chaosOf(t)
	c := newChaos(t)
	c.run(length, seed, c.faults())
}

// chaosOf returns how long and with which seed chaos is wanted.
func chaosOf(t *testing.T) (length time.Duration, seed uint64) {
	t.Helper()
	length, seed = 20*time.Second, 1
	if text := os.Getenv("ADIT_CHAOS"); text != "" {
		parsed, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		length = parsed
	} else {
		require.Opted(t)
	}
	if text := os.Getenv("ADIT_CHAOS_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	return length, seed
}

// run strikes for a while, and says what was survived.
func (c *chaos) run(length time.Duration, seed uint64, faults []fault) {
	t := c.t
	random := rand.New(rand.NewPCG(seed, 0))
	before := c.memory()
	var held []int64 // by relay and agent after each fault
	survived := map[string]int{}
	for begin := time.Now(); time.Since(begin) < length; {
		fault := faults[random.IntN(len(faults))]
		fault.strike(time.Duration(200+random.IntN(2500)) * time.Millisecond)
		took := c.awaitWhole()
		survived[fault.name]++
		held = append(held, c.memory())
		if took > 2*comeBack {
			t.Errorf("%s: all answered again after %v", fault.name, took)
		}
	}
	requests := c.stop()
	quarters := medians(held)
	t.Logf("seed %d: survived %v; %d transfers whole, %d cut by a fault; memory of relay and agent %d MB before, by quarters of the time %d, %d, %d and %d MB",
		seed, survived, requests.whole.Load(), requests.cut.Load(), before>>20, quarters[0]>>20, quarters[1]>>20, quarters[2]>>20, quarters[3]>>20)
	if requests.whole.Load() < int64(length/time.Second) {
		t.Errorf("only %d transfers were whole", requests.whole.Load())
	}
	if quarters[3] > before+200<<20 || length >= 10*time.Minute && quarters[3] > quarters[1]+40<<20 {
		t.Errorf("memory grew to %d MB", quarters[3]>>20)
	}
}

// medians returns the median of each quarter of list.
func medians(list []int64) (quarters [4]int64) {
	for i := range quarters {
		if part := slices.Sorted(slices.Values(list[i*len(list)/4 : (i+1)*len(list)/4])); len(part) > 0 {
			quarters[i] = part[len(part)/2]
		}
	}
	return quarters
}

type transfers struct{ whole, cut atomic.Int64 }

type chaos struct {
	t       *testing.T
	relay   *relay
	agent   *agent
	tunnels map[string]tunnel // by type
	client  *http.Client
	count   transfers
	end     chan struct{}
	wg      sync.WaitGroup
}

func newChaos(t *testing.T) *chaos {
	return newChaosBetween(t, newRelay(t), newAgent(t), newOrigin(t), newEcho(t))
}

func newChaosBetween(t *testing.T, relay *relay, agent *agent, port, echo int) *chaos {
	t.Helper()
	c := &chaos{t: t, relay: relay, agent: agent, tunnels: map[string]tunnel{}, end: make(chan struct{})}
	c.agent.configure(c.relay.client("laptop"))
	for _, kind := range []string{"http", "https"} {
		c.tunnels[kind] = c.agent.publish(kind, port, map[string]any{"domain": "chaos-" + kind})
	}
	c.tunnels["tcp"] = c.agent.publish("tcp", echo, nil)
	c.client = c.relay.visitor()
	c.client.Timeout = 20 * time.Second
	c.client.Transport.(*http.Transport).TLSNextProto = noHTTP2
	c.awaitWhole()
	for i := range 3 {
		c.wg.Go(func() { c.load(func(r *rand.Rand) error { return c.download(r) }, uint64(i)) })
		c.wg.Go(func() { c.load(func(r *rand.Rand) error { return c.upload(r) }, uint64(10+i)) })
		c.wg.Go(func() { c.load(func(r *rand.Rand) error { return c.echo(r) }, uint64(20+i)) })
	}
	return c
}

// load repeats a transfer until the end. A transfer may be cut by a fault, and
// then errs; it may never give wrong bytes, which wrongBytes tells.
func (c *chaos) load(transfer func(*rand.Rand) error, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	for {
		select {
		case <-c.end:
			return
		default:
		}
		err := transfer(random)
		switch err := err.(type) {
		case nil:
			c.count.whole.Add(1)
		case wrongBytes:
			c.t.Errorf("wrong bytes: %v", err)
			return
		default:
			c.count.cut.Add(1)
			select {
			case <-c.end:
			case <-time.After(20 * time.Millisecond): // a fault is on: do not spin
			}
		}
	}
}

type wrongBytes string

func (w wrongBytes) Error() string { return string(w) }

func (c *chaos) url(random *rand.Rand) string {
	return strings.TrimSuffix(c.tunnels[[]string{"http", "https"}[random.IntN(2)]].PublicURL, "/")
}

func (c *chaos) download(random *rand.Rand) error {
	size := int64(random.IntN(4 << 20))
	resp, err := c.client.Get(fmt.Sprintf("%s/file?size=%d", c.url(random), size))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, resp.Body)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Length") == "" {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err != nil {
		return err
	}
	if n != size || hexSum(sum) != patternSum(size) {
		return wrongBytes(fmt.Sprintf("a download of %d bytes gave %d with another sum and no error", size, n))
	}
	return nil
}

func (c *chaos) upload(random *rand.Rand) error {
	size := int64(random.IntN(4 << 20))
	resp, err := c.client.Post(c.url(random)+"/upload", "application/octet-stream", io.LimitReader(&pattern{}, size))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if string(body) != patternSum(size) {
		return wrongBytes(fmt.Sprintf("an upload of %d bytes arrived with another sum", size))
	}
	return nil
}

func (c *chaos) echo(random *rand.Rand) error {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(c.tunnels["tcp"].PublicURL, "tcp://"), 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	size := int64(random.IntN(1 << 20))
	go func() {
		io.CopyN(conn, &pattern{}, size)
		conn.(*net.TCPConn).CloseWrite()
	}()
	want, got := &pattern{}, make([]byte, 32<<10)
	expected := make([]byte, len(got))
	var at int64
	for {
		n, err := io.ReadFull(conn, got)
		if at += int64(n); n > 0 {
			want.Read(expected)
			if string(got[:n]) != string(expected[:n]) {
				return wrongBytes(fmt.Sprintf("an echo differs before byte %d", at))
			}
		}
		if err != nil {
			break
		}
	}
	if at != size {
		return fmt.Errorf("%d of %d bytes", at, size)
	}
	return nil
}

type fault struct {
	name   string
	strike func(length time.Duration)
}

func (c *chaos) faults() []fault {
	list := []fault{
		{"relay killed", func(length time.Duration) {
			c.relay.proc.kill()
			<-time.After(length)
			c.relay.start()
		}},
		{"daemon killed", func(length time.Duration) {
			c.agent.proc.kill()
			<-time.After(length)
			c.agent.start()
		}},
		{"daemon restarted", func(time.Duration) {
			c.agent.proc.stop()
			c.agent.start()
		}},
		{"relay paused", func(length time.Duration) { stopped(length, c.relay.proc) }},
		{"daemon paused", func(length time.Duration) { stopped(length, c.agent.proc) }},
		{"told to reconnect", func(time.Duration) {
			c.agent.ok(http.StatusOK, "POST", "/api/v1/reconnect", nil, nil)
		}},
		{"tunnel stopped and started", func(length time.Duration) {
			id := c.tunnels["http"].ID
			c.retried("/api/v1/tunnels/" + id + "/stop")
			<-time.After(length / 4)
			c.retried("/api/v1/tunnels/" + id + "/start")
		}},
	}
	if !canStop {
		list = slices.DeleteFunc(list, func(f fault) bool { return strings.HasSuffix(f.name, " paused") })
	}
	return list
}

// retried posts until the daemon is not busy with the last request any more.
func (c *chaos) retried(path string) {
	await(c.t, path, func() error {
		if got := c.agent.call("POST", path, nil); got.Status != http.StatusOK {
			return fmt.Errorf("%d %s", got.Status, got.Raw)
		}
		return nil
	})
}

// awaitWhole waits until every tunnel answers at the URL it had.
func (c *chaos) awaitWhole() time.Duration {
	c.t.Helper()
	begin := time.Now()
	random := rand.New(rand.NewPCG(1, 1))
	for kind, before := range c.tunnels {
		await(c.t, "the "+kind+" tunnel is whole", func() error {
			got, err := c.agent.tryCall("GET", "/api/v1/tunnels/"+before.ID, nil)
			if err != nil {
				return err
			}
			var now tunnel
			decode(c.t, string(got.Data), &now)
			if now.State != "running" {
				return fmt.Errorf("tunnel %+v", now)
			}
			if now.PublicURL != before.PublicURL {
				c.t.Fatalf("public_url was %s and is %s", before.PublicURL, now.PublicURL)
			}
			if kind == "tcp" {
				return c.echo(random)
			}
			return answers(c.client, before.PublicURL)()
		})
	}
	return time.Since(begin)
}

func (c *chaos) memory() (sum int64) {
	for _, p := range []*process{c.relay.proc, c.agent.proc} {
		sum += residentBytes(c.t, p.cmd.Process.Pid)
	}
	return sum
}

func (c *chaos) stop() *transfers {
	close(c.end)
	c.wg.Wait()
	return &c.count
}

// residentBytes is a process's resident set, by Linux's /proc.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
