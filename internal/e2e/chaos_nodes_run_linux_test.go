package e2e

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// run strikes for a while, and says what was survived.
func (c *nodesChaos) run(length time.Duration, seed uint64, faults []fault) {
	t := c.t
	defer func() {
		for _, s := range c.nats {
			if t.Failed() {
				s.explain()
			}
		}
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	before := c.memory()
	var held []int64
	survived, worst, healed := map[string]int{}, map[string]time.Duration{}, []time.Duration{}
	order := random.Perm(len(faults)) // each once before any twice
	for begin, i := time.Now(), 0; time.Since(begin) < length; i++ {
		if i == len(order) {
			order, i = random.Perm(len(faults)), 0
		}
		fault := faults[order[i]]
		c.admin.begin(random.Uint64())
		c.guarded.begin(random.Uint64())
		began := time.Now()
		fault.strike(time.Duration(500+random.IntN(4000)) * time.Millisecond)
		struck := time.Now()
		c.awaitWhole()
		took := time.Since(struck)
		c.admin.settle(fault.name + ", ended at " + struck.UTC().Format("15:04:05.000"))
		c.guarded.settle(fault.name)
		c.oneHasTheName(random, fault.name)
		c.revokedGetsNothing(random, fault.name)
		survived[fault.name]++
		worst[fault.name] = max(worst[fault.name], took.Round(10*time.Millisecond))
		healed = append(healed, took)
		held = append(held, c.memory())
		t.Logf("%s, %s to %s: all answered everywhere after %v, all agreed and gave way after %v, a revoked client was served for %v",
			fault.name, began.UTC().Format("15:04:05.000"), struck.UTC().Format("15:04:05.000"), took.Round(time.Millisecond), time.Since(struck).Round(time.Millisecond), c.revoked[len(c.revoked)-1].Round(time.Millisecond))
	}
	close(c.end)
	c.wg.Wait()
	quarters := medians(held)
	slices.Sort(c.revoked)
	slices.Sort(healed)
	t.Logf("seed %d: survived %v; %d visits whole, %d cut or refused during a fault; all answered everywhere again after %v at the median, at most %v",
		seed, survived, c.count.whole.Load(), c.count.cut.Load(), healed[len(healed)/2].Round(time.Millisecond), worst)
	t.Logf("the administrator: %v; a revoked client was served nowhere after %v at the median, %v at most",
		c.admin.did(), c.revoked[len(c.revoked)/2].Round(time.Millisecond), c.revoked[len(c.revoked)-1].Round(time.Millisecond))
	c.guarded.did(t)
	t.Logf("memory of relays and agents %d MB before, by quarters of the time %d, %d, %d and %d MB",
		before>>20, quarters[0]>>20, quarters[1]>>20, quarters[2]>>20, quarters[3]>>20)
	if c.count.whole.Load() < int64(length/time.Second) {
		t.Errorf("only %d visits were whole", c.count.whole.Load())
	}
	if quarters[3] > before+900<<20 || length >= 10*time.Minute && quarters[3] > quarters[1]+200<<20 {
		t.Errorf("memory grew to %d MB", quarters[3]>>20)
	}
}

func (c *nodesChaos) memory() (sum int64) {
	for _, r := range c.nodes {
		sum += residentBytes(c.t, r.proc.cmd.Process.Pid)
	}
	for _, a := range c.agents {
		sum += residentBytes(c.t, a.proc.cmd.Process.Pid)
	}
	return sum
}

// awaitWhole waits until all nodes reach each other, every agent has its two
// sessions, and every site answers at every node.
func (c *nodesChaos) awaitWhole() {
	c.t.Helper()
	for i, r := range c.nodes {
		await(c.t, fmt.Sprintf("node %d reaches all others", i), func() error { return c.admin.reaches(r, len(c.nodes)) })
	}
	await(c.t, "every agent has two sessions", c.admin.twoSessionsEach(c.agents))
	c.awaitAnswers()
}

// awaitAnswers waits until every site answers at every node.
func (c *nodesChaos) awaitAnswers() {
	c.t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	for i := range c.nodes {
		for _, s := range c.sites {
			await(c.t, fmt.Sprintf("%s of agent %d answers at node %d", s.kind, s.agent, i), func() error {
				err := c.visit(i, s, random)
				var wrong wrongBytes
				if errors.As(err, &wrong) {
					c.t.Fatal(err)
				}
				return err
			})
		}
	}
}

// served is what a name's site says at a node.
func (c *nodesChaos) served(node int, name string) (text string, err error) {
	err = c.request("GET", node, name, "/", nil, func(body io.Reader) error {
		b, err := io.ReadAll(body)
		text = string(b)
		return err
	})
	return text, err
}

// oneHasTheName has two clients ask for one name at the same time: one gets it,
// and is who answers at every node.
func (c *nodesChaos) oneHasTheName(random *rand.Rand, after string) {
	t := c.t
	t.Helper()
	name := fmt.Sprintf("contested%d", random.IntN(1<<30))
	var got [2]answer
	var errs [2]error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got[1], errs[1] = c.wants(1, name)
	}()
	got[0], errs[0] = c.wants(0, name)
	<-done
	winner := -1
	for i, g := range got {
		switch {
		case errs[i] != nil:
			t.Errorf("%s: agent %d: %v", after, i, errs[i])
		case g.Status == http.StatusCreated && winner >= 0:
			t.Errorf("%s: both clients were given %s", after, name)
		case g.Status == http.StatusCreated:
			winner = i
		case g.Error.Code != "relay_rejected":
			t.Errorf("%s: agent %d asked for a name: %s", after, i, g.Raw)
		}
	}
	if winner < 0 {
		t.Errorf("%s: nobody was given %s: %s, %s", after, name, got[0].Raw, got[1].Raw)
		return
	}
	want := []string{"first", "second"}[winner]
	for i := range c.nodes {
		await(t, "the name's holder answers", func() error {
			text, err := c.served(i, name+".localhost")
			if err == nil && text != want {
				t.Fatalf("%s: node %d serves %s by %s, want %s", after, i, name, text, want)
			}
			return err
		})
	}
	var made tunnel
	decode(t, string(got[winner].Data), &made)
	await(t, "the name is given back", func() error {
		if got := c.agents[winner].call("DELETE", "/api/v1/tunnels/"+made.ID, nil); got.Status != http.StatusNoContent && got.Status != http.StatusNotFound {
			return errors.New(got.Raw)
		}
		return nil
	})
	for i := range c.nodes {
		await(t, "a name that was given back is served nowhere", func() error {
			if text, err := c.served(i, name+".localhost"); err != badStatus(http.StatusNotFound) {
				return fmt.Errorf("node %d: %q, %v", i, text, err)
			}
			return nil
		})
	}
}

// wants asks for a tunnel at a name, again while the relay does not answer.
func (c *nodesChaos) wants(agent int, name string) (got answer, err error) {
	body := map[string]any{"type": "http", "mode": "standard", "local_port": c.contest[agent], "domain": name}
	for begin := time.Now(); time.Since(begin) < patience; <-time.After(200 * time.Millisecond) {
		got, err = c.agents[agent].tryCall("POST", "/api/v1/tunnels", body)
		if err == nil && got.Status != http.StatusServiceUnavailable && got.Status != http.StatusConflict {
			return got, nil
		}
	}
	return got, errors.Join(err, errors.New(got.Raw))
}

// revokedGetsNothing has a client with a tunnel revoked, and then asks for it at
// every node.
func (c *nodesChaos) revokedGetsNothing(random *rand.Rand, after string) {
	t := c.t
	t.Helper()
	name := fmt.Sprintf("victim%d", random.IntN(1<<30))
	token := c.admin.add(random.IntN(len(c.nodes)), name)
	configure := map[string]any{"auth_token": token}
	await(t, "a new client connects", func() error {
		if got := c.victim.call("POST", "/api/v1/auth/configure", configure); got.Status != http.StatusOK {
			return errors.New(got.Raw)
		}
		return nil
	})
	c.victim.awaitConnected()
	made := c.victim.publish("http", c.contest[0], map[string]any{"domain": name})
	for i := range c.nodes {
		await(t, "the new client's tunnel answers", func() error {
			_, err := c.served(i, name+".localhost")
			return err
		})
	}
	c.admin.revoke(random.IntN(len(c.nodes)), name)
	begin := time.Now()
	for i := range c.nodes {
		await(t, after+": a revoked client is served nowhere", func() error {
			if _, err := c.served(i, name+".localhost"); err != badStatus(http.StatusNotFound) && err != badStatus(http.StatusBadGateway) && err != badStatus(http.StatusServiceUnavailable) {
				return fmt.Errorf("node %d: %v", i, err)
			}
			return nil
		})
	}
	took := time.Since(begin)
	c.revoked = append(c.revoked, took)
	if took > 20*time.Second {
		t.Errorf("%s: a revoked client was served for %v", after, took)
	}
	await(t, "the revoked agent knows", func() error {
		if s := c.victim.status(); s.State != "rejected" {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	await(t, "a revoked token is refused", func() error {
		got := c.victim.call("POST", "/api/v1/auth/configure", configure)
		// A node that no other reaches at that moment may hear of it a little later.
		if got.Status == http.StatusOK && time.Since(begin) > time.Second {
			t.Fatalf("%s: a revoked token was taken: %s", after, got.Raw)
		}
		if got.Status != http.StatusBadRequest { // a node may not be sure of it yet
			return errors.New(got.Raw)
		}
		return nil
	})
	c.victim.ok(http.StatusNoContent, "DELETE", "/api/v1/tunnels/"+made.ID, nil, nil)
}
