package e2e

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// faults are those that need no rights.
func (c *nodesChaos) faults(seed uint64) []fault {
	random := rand.New(rand.NewPCG(seed, 5))
	node := func() int { return random.IntN(len(c.nodes)) }
	server := func() *natsProcess { return c.nats[random.IntN(len(c.nats))] }
	return []fault{
		{"node killed", func(length time.Duration) {
			r := c.nodes[node()]
			r.proc.kill()
			<-time.After(length)
			r.start()
		}},
		{"node paused", func(length time.Duration) { stopped(length, c.nodes[node()].proc) }},
		{"node paused past its lease", func(length time.Duration) { stopped(16*time.Second+length, c.nodes[node()].proc) }},
		{"two nodes paused", func(length time.Duration) {
			spared := node()
			stopped(length, c.nodes[(spared+1)%3].proc, c.nodes[(spared+2)%3].proc)
		}},
		{"NATS server killed", func(length time.Duration) {
			s := server()
			s.kill()
			<-time.After(length)
			s.start()
		}},
		{"NATS server paused", func(length time.Duration) { stopped(2*length, server()) }},
		{"two NATS servers killed", func(length time.Duration) {
			spared := random.IntN(3)
			for i := 1; i <= 2; i++ {
				c.nats[(spared+i)%3].kill()
			}
			<-time.After(length)
			for i := 1; i <= 2; i++ {
				c.nats[(spared+i)%3].start()
			}
		}},
		{"all of NATS killed", func(length time.Duration) {
			for _, s := range c.nats {
				s.kill()
			}
			c.awaitAnswers() // visitors and connected agents go on
			<-time.After(length)
			for _, s := range c.nats {
				s.start()
			}
		}},
		{"all of NATS paused", func(length time.Duration) {
			for _, s := range c.nats {
				s.signal(syscall.SIGSTOP)
			}
			c.awaitAnswers()
			c.agents[0].ok(http.StatusOK, "POST", "/api/v1/reconnect", nil, nil)
			c.agents[0].awaitConnected() // a handshake asks the store nothing
			c.awaitAnswers()
			<-time.After(length)
			for _, s := range c.nats {
				s.signal(syscall.SIGCONT)
			}
		}},
		{"NATS loses its last writes", func(length time.Duration) { c.forget(2 * length) }},
		{"NATS slow", func(length time.Duration) { c.slow(length) }},
		{"node and NATS server killed", func(length time.Duration) {
			r, s := c.nodes[node()], server()
			r.proc.kill()
			s.kill()
			<-time.After(length)
			s.start()
			r.start()
		}},
		{"agent killed", func(length time.Duration) {
			a := c.agents[random.IntN(len(c.agents))]
			a.proc.kill()
			<-time.After(length)
			a.start()
		}},
		{"agent paused", func(length time.Duration) { stopped(length, c.agents[random.IntN(len(c.agents))].proc) }},
		{"a node's clock set", func(time.Duration) {
			i := node()
			to := jump(random)
			c.t.Logf("the clock of node %d is set by %+v", i, to)
			c.clocks[i].set(to)
		}},
		{"node restarted with another clock", func(length time.Duration) {
			i := node()
			to := jump(random)
			c.t.Logf("node %d is restarted with its clock set by %+v", i, to)
			c.nodes[i].proc.kill()
			c.clocks[i].set(to)
			<-time.After(length)
			c.nodes[i].start()
		}},
		{"rolling restart", func(time.Duration) {
			for i, r := range c.nodes {
				if code := r.proc.stop(); code != 0 {
					c.t.Errorf("node %d ended with code %d", i, code)
				}
				r.start()
				c.awaitWhole()
			}
		}},
	}
}

// forget has all NATS servers lose what they have acknowledged within a time, as servers
// do whose machines lose their power before it is on the disk. The nodes know it.
func (c *nodesChaos) forget(of time.Duration) {
	was := c.t.TempDir()
	defer os.RemoveAll(was) // the room for it is in memory, and the next one wants it
	copied := func(from, to func(s *natsProcess) string) {
		for _, s := range c.nats {
			s.kill()
		}
		for _, s := range c.nats {
			if err := errors.Join(empty(to(s)), os.CopyFS(to(s), os.DirFS(from(s)))); err != nil {
				c.t.Error(err)
			}
		}
		for _, s := range c.nats {
			s.start()
		}
	}
	disk := func(s *natsProcess) string { return s.dir }
	kept := func(s *natsProcess) string { return filepath.Join(was, filepath.Base(s.dir)) }
	copied(disk, kept)
	c.awaitWhole()
	<-time.After(of)
	copied(kept, disk)
}

// empty removes what is in a folder, which may be a disk of its own.
func empty(folder string) error {
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, one := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, one.Name())))
	}
	return err
}

// slow has every NATS server stand still for two seconds of each 2.2, so that its
// answers come late. Visitors and handshakes do not wait for them.
func (c *nodesChaos) slow(length time.Duration) {
	var wg sync.WaitGroup
	end := make(chan struct{})
	for _, s := range c.nats {
		wg.Go(func() {
			for {
				stopped(2*time.Second, s)
				select {
				case <-end:
					return
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
	begin := time.Now()
	c.awaitAnswers()
	visits := time.Since(begin)
	begin = time.Now()
	c.agents[1].ok(http.StatusOK, "POST", "/api/v1/reconnect", nil, nil)
	connected := c.agents[1].awaitConnected()
	c.awaitAnswers()
	c.t.Logf("NATS slow: %s for a visit of each site at each node, an agent connected again within %v, and all were visited again %v later",
		visits.Round(time.Millisecond), connected.Round(time.Millisecond), (time.Since(begin) - connected).Round(time.Millisecond))
	<-time.After(2 * length)
	close(end)
	wg.Wait()
}
