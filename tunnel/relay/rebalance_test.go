package relay

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// mover is an agent that moves when it is told to.
type mover struct {
	token wire.Token
	name  string
	moves atomic.Int32

	mu  sync.Mutex
	now *fakeAgent
}

// follow does what the relay asks for, until end is closed.
func (m *mover) follow(tb testing.TB, end <-chan struct{}) {
	for {
		m.mu.Lock()
		now := m.now
		m.mu.Unlock()
		select {
		case <-end:
			return
		case e := <-now.events:
			if e.Type != wire.EventDrain {
				continue
			}
			if len(e.Nodes) == 0 || e.Nodes[0].Address == now.session.RemoteAddr().String() {
				tb.Errorf("%s was told to go to %+v", m.name, e.Nodes)
				return
			}
			token := m.token
			token.Relay = e.Nodes[0].Address
			next, err := dialAgent(tb, token, m.name)
			if err != nil {
				tb.Errorf("%s cannot go to %s: %v", m.name, token.Relay, err)
				return
			}
			now.close()
			m.moves.Add(1)
			m.mu.Lock()
			m.now = next
			m.mu.Unlock()
		}
	}
}

// TestAgentsSpreadOverNodesThatJoin makes nodes join one that has all the agents. The
// agents move a few at a time until each node has its share, and then stay.
func TestAgentsSpreadOverNodesThatJoin(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 1)
	c.balance = 100 * time.Millisecond
	first := c.add() // the one of startNodes is not in a hurry: it has no agent
	if err := c.all[0].stop(); err != nil {
		t.Fatal(err)
	}
	token := first.client(t, "shop")
	end := make(chan struct{})
	var following sync.WaitGroup
	defer following.Wait()
	defer close(end)
	var movers []*mover
	for i := range 9 {
		m := &mover{token: token, name: fmt.Sprintf("i%d", i)}
		m.now = connect(t, first.at(token), m.name)
		movers = append(movers, m)
		following.Go(func() { m.follow(t, end) })
	}
	nodes := []*testRelay{first}
	for _, share := range []int{4, 3} { // at least, on each of two nodes and then of three
		nodes = append(nodes, c.add())
		c.awaitWhole(nodes...)
		eventually(t, fmt.Sprintf("%d nodes share the agents", len(nodes)), func() bool {
			for _, r := range nodes {
				if len(r.roster.All()) < share {
					return false
				}
			}
			return true
		})
	}
	eventually(t, "nobody is to move any more", func() bool {
		for _, r := range nodes {
			if on := r.far.SessionsOn(); len(r.roster.All()) != 3 || len(on) != 2 || len(r.toMove()) > 0 {
				return false
			}
		}
		return true
	})
	moves := 0
	for _, m := range movers {
		moves += int(m.moves.Load())
	}
	// Six or seven would do. One that is counted at
	// both its nodes, as it moves, may have another follow for nothing.
	if moves > 40 {
		t.Errorf("the agents moved %d times, want hardly more than 7, and no end of it", moves)
	}
}

// TestWhatCannotBeSharedEvenlyStays uses two agents with two sessions each on three
// nodes: one node has two, whoever moves.
func TestWhatCannotBeSharedEvenlyStays(t *testing.T) {
	for _, c := range []struct{ own, total, nodes, want int }{
		{2, 4, 3, 0},
		{3, 4, 3, 1},
		{3, 7, 3, 0},
		{4, 7, 3, 1},
		{3, 8, 3, 0},
		{4, 8, 3, 1},
		{3, 6, 3, 1},
		{2, 3, 2, 0},
		{3, 3, 2, 1},
		{1, 1, 3, 0},
		{110, 300, 3, 0},
		{120, 300, 3, 20},
		{300, 300, 3, 200},
	} {
		if got := tooMany(c.own, c.total, c.nodes); got != c.want {
			t.Errorf("%d of %d sessions at one of %d nodes: got %d too many, want %d", c.own, c.total, c.nodes, got, c.want)
		}
	}
}
