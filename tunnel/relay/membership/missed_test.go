package membership

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/nodes"
)

// TestANodeThatWentWithoutAWordIsMissed checks that such a node is missed until it is
// back or a day has passed, and that one that announced its end is not.
func TestANodeThatWentWithoutAWordIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := start(t)
		there, ends := nodes.PeerState{Connected: true}, nodes.PeerState{Connected: true, Draining: true}
		expect := func(what string, want int) {
			t.Helper()
			if list := m.Missed(); len(list) != want {
				t.Errorf("%s: missed are %+v, want %d", what, list, want)
			}
		}
		c.set("b", true, there)
		c.set("c", true, there)
		expect("all are there", 0)
		c.set("b", false, there)
		expect("a lease ended, and the node answers", 0)
		at := time.Now()
		c.set("b", false, nodes.PeerState{})
		expect("it answers no more", 1)
		if n := m.Missed()[0]; n.ID != "b" || n.AgentAddress != "b:4433" || !n.Since.Equal(at) {
			t.Errorf("missed is %+v", n)
		}
		c.set("b", true, nodes.PeerState{})
		expect("it is back", 0)
		c.set("c", true, ends)
		c.set("c", true, nodes.PeerState{})
		c.set("c", false, nodes.PeerState{})
		expect("the other said that it ends", 0)
		c.set("b", false, nodes.PeerState{})
		time.Sleep(missedTime)
		expect("for a day", 1)
		time.Sleep(time.Second)
		expect("for longer", 0)
		for i := range missedMost + 3 {
			time.Sleep(time.Second)
			c.set(fmt.Sprint(i), true, nodes.PeerState{})
			c.set(fmt.Sprint(i), false, nodes.PeerState{})
		}
		expect("very many", missedMost)
		if first := m.Missed()[0].ID; first != "3" {
			t.Errorf("the first that is missed is %s, want 3: those before were forgotten", first)
		}
	})
}

// TestANodeThatSaidThatItEndsIsNotMissed covers a node that was no longer listed when it
// announced its end, for example because the store took no entries. A restarted node with
// the same id is missed.
func TestANodeThatSaidThatItEndsIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := start(t)
		there := nodes.PeerState{Connected: true}
		c.set("b", true, there)
		c.set("b", false, there)
		c.set("b", false, nodes.PeerState{Connected: true, Draining: true})
		c.set("b", false, nodes.PeerState{})
		if list := m.Missed(); len(list) != 0 {
			t.Errorf("missed are %+v", list)
		}
		c.set("b", true, there)
		c.set("b", false, nodes.PeerState{})
		if list := m.Missed(); len(list) != 1 {
			t.Errorf("missed are %+v, want the one that began anew", list)
		}
	})
}
