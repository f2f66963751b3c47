package agent

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// pausedAgent runs an agent in a bubble that needs no relay: it is paused.
func pausedAgent(t *testing.T) *Agent {
	t.Helper()
	token := wire.Token{Relay: "relay.example:4433"}
	a, err := New(Config{
		StateDir: t.TempDir(), AuthToken: token.Reveal(),
		Dial: func(context.Context, link.DialConfig) (link.Session, error) { return nil, errors.New("no relay here") },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if _, err := a.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

func wantHeld(t *testing.T, a *Agent, id string, want bool) {
	t.Helper()
	synctest.Wait()
	if _, got := a.Tunnel(id); got != want {
		t.Fatalf("the tunnel is there: got %t, want %t", got, want)
	}
}

func TestTunnelOutlivesItsHolderByTheGraceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := pausedAgent(t)
		stays := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true})
		held := mustCreate(t, a, definition.Tunnel{LocalPort: 81, Ephemeral: true, Held: true})
		first, err := a.Hold(held.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		wantHeld(t, a, held.ID, true)

		first.Release()
		first.Release() // counts once
		time.Sleep(holdGrace - time.Millisecond)
		wantHeld(t, a, held.ID, true)
		second, err := a.Hold(held.ID) // it came back in time
		if err != nil {
			t.Fatal(err)
		}
		third, err := a.Hold(held.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		second.Release()
		time.Sleep(time.Hour)
		wantHeld(t, a, held.ID, true)
		third.Release()
		time.Sleep(holdGrace + time.Millisecond)
		wantHeld(t, a, held.ID, false)
		select {
		case <-third.Gone:
		default:
			t.Error("its holders were not told")
		}
		wantHeld(t, a, stays.ID, true)
		_, err = a.Hold(held.ID)
		wantCode(t, err, refusal.CodeNotFound, "")
	})
}

func TestTunnelThatNobodyEverHeldGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := pausedAgent(t)
		one := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true})
		time.Sleep(time.Second)
		two := mustCreate(t, a, definition.Tunnel{LocalPort: 81, Ephemeral: true, Held: true})
		time.Sleep(holdGrace - time.Millisecond)
		wantHeld(t, a, one.ID, false)
		wantHeld(t, a, two.ID, true)
		time.Sleep(2 * time.Millisecond)
		wantHeld(t, a, two.ID, false)
	})
}

func TestUnheldTunnelIsRemovedOnceItCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := pausedAgent(t)
		held := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true})
		write := a.state.Write
		setWrite(a, func(string, []byte, os.FileMode) error { return errors.New("disk full") })
		time.Sleep(2 * holdGrace)
		wantHeld(t, a, held.ID, true)
		setWrite(a, write)
		a.turn.Lock() // another request runs
		time.Sleep(2 * holdGrace)
		wantHeld(t, a, held.ID, true)
		a.turn.Unlock()
		time.Sleep(time.Second)
		wantHeld(t, a, held.ID, false)
	})
}

func TestDeletedTunnelTellsItsHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := pausedAgent(t)
		held := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true})
		h, err := a.Hold(held.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.DeleteTunnel(t.Context(), held.ID); err != nil {
			t.Fatal(err)
		}
		<-h.Gone
		h.Release()
		time.Sleep(2 * holdGrace)
	})
}

func TestOnlyEphemeralTunnelsCanBeHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := pausedAgent(t)
		_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80, Held: true})
		wantCode(t, err, refusal.CodeInvalidParameter, "held")
		stays := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true})
		_, err = a.Hold(stays.ID)
		wantCode(t, err, refusal.CodeInvalidParameter, "held")
	})
}

func TestUnheldTunnelIsTakenFromTheRelay(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	held := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true})
	if _, ok := r.claim(held.ID); !ok {
		t.Fatal("the relay has no claim of the tunnel")
	}
	a.mu.Lock()
	a.tunnels[held.ID].holders.left = time.Now().Add(-holdGrace)
	a.mu.Unlock()
	a.pokeHolds()
	eventually(t, "the claim is given back", func() bool {
		_, ok := r.claim(held.ID)
		return !ok
	})
}

func TestAgentThatEndsGivesBackWhatNobodyCameToHold(t *testing.T) {
	r := newFakeRelay(t)
	a, stop := configured(t, r, Config{})
	left := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true})
	held := mustCreate(t, a, definition.Tunnel{LocalPort: 81, Ephemeral: true, Held: true})
	stays := mustCreate(t, a, definition.Tunnel{LocalPort: 82, Ephemeral: true})
	hold, err := a.Hold(held.ID)
	if err != nil {
		t.Fatal(err)
	}
	hold.Release() // as the end of the local API does
	stop()
	for id, want := range map[string]bool{left.ID: false, held.ID: true, stays.ID: true} {
		if _, got := r.claim(id); got != want {
			t.Errorf("the relay has the claim of %s: got %t, want %t", id, got, want)
		}
	}
}

// TestAgentThatEndsGivesBackATunnelInTheMaking has the one who wishes for a tunnel
// give up, and end the agent, while the relay is at it.
func TestAgentThatEndsGivesBackATunnelInTheMaking(t *testing.T) {
	r := newFakeRelay(t)
	a, stop := configured(t, r, Config{})
	gone, giveUp := context.WithCancel(t.Context())
	r.set(func() {
		r.onClaim = func(string, wire.Claim) *wire.Problem {
			giveUp()
			go stop()
			return nil
		}
	})
	if made, err := a.Create(gone, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true}); err == nil {
		t.Logf("it was made all the same, as %s", made.ID)
	}
	stop()
	r.set(func() {
		if n := len(r.claims); n != 0 {
			t.Errorf("the relay has %d claims, want none", n)
		}
	})
}

// The end of the agent does not wait for a relay that answers nothing: whoever ends it
// would kill it after a while, and it would look like a crash.
func TestEndDoesNotWaitForAClaimThatIsUnderWay(t *testing.T) {
	r := newFakeRelay(t)
	a, stop := configured(t, r, Config{})
	mustCreate(t, a, definition.Tunnel{LocalPort: 80, Ephemeral: true, Held: true})
	hold := make(chan struct{})
	defer close(hold)
	r.set(func() { r.hold = hold })
	r.drop()
	eventually(t, "the tunnel is claimed again", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.held > 0
	})
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > relayWait/2 {
		t.Errorf("the end took %v, want about %v", took, parting)
	}
}
