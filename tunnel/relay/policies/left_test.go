package policies

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/store"
)

const closed = `{"deny":["0.0.0.0/0","::/0"]}`

// laidLeft returns a table with one policy, for a target that is served and claimed.
func laidLeft(several bool) *laid {
	l := lay()
	l.served, l.claimed, l.several = map[string]bool{"a": true}, map[string]bool{"a": true}, several
	l.put("a", closed)
	return l
}

func (l *laid) delete(target string) { l.Set(target, store.StoredPolicy{}, false) }

func TestDeletedPoliciesAreInForceNoMore(t *testing.T) {
	l := laidLeft(false)
	if l.delete("a"); l.Get("a") != nil {
		t.Error("of a target that somebody has the policy is in force")
	}
	l = laidLeft(false)
	l.served["a"], l.claimed["a"] = false, false
	if l.delete("a"); l.Get("a") != nil {
		t.Error("of a target that is not served the policy is in force")
	}
}

// TestPoliciesOfWhatIsGivenBackStay covers tunnels that are served for a moment longer,
// or run without a claim.
func TestPoliciesOfWhatIsGivenBackStay(t *testing.T) {
	away := errors.New("the store is away")
	for _, c := range []struct {
		name    string
		several bool
		claimed bool
		fault   error
		then    func(l *laid)
		stays   bool
	}{
		{name: "nobody has it", stays: true, then: func(*laid) {}},
		{name: "it is served no more", then: func(l *laid) { l.with(func() { l.served["a"] = false }) }},
		{name: "somebody has it anew", then: func(l *laid) { l.with(func() { l.claimed["a"] = true }) }},
		{name: "several nodes, somebody has it", several: true, claimed: true, then: func(*laid) {}},
		{name: "several nodes, and it is not known", several: true, claimed: true, fault: away, stays: true, then: func(*laid) {}},
		{name: "several nodes, and it is known later", several: true, claimed: true, fault: away, then: func(l *laid) { l.with(func() { l.fault = nil }) }},
		{name: "another policy", stays: true, then: func(l *laid) { l.put("a", closed); l.with(func() { l.claimed["a"] = true }) }},
		{name: "it is held", stays: true, then: func(l *laid) { l.Hold("a"); l.with(func() { l.claimed["a"] = true }) }},
		{name: "it was held", then: func(l *laid) {
			_, release := l.Hold("a")
			release()
			l.with(func() { l.claimed["a"] = true })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := laidLeft(c.several)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go l.WatchLeft(ctx)
				l.with(func() { l.claimed["a"], l.fault = c.claimed, c.fault })
				l.delete("a")
				synctest.Wait()
				if l.Get("a") == nil {
					t.Fatal("the policy is in force no more")
				}
				c.then(l)
				time.Sleep(3 * lookAgain)
				synctest.Wait()
				if stays := l.Get("a") != nil; stays != c.stays {
					t.Errorf("the policy stays in force: %v, want %v", stays, c.stays)
				}
				cancel()
				synctest.Wait()
				if !c.stays && l.times == 0 {
					t.Error("what is open was not looked at")
				}
			})
		})
	}
}

// TestWhoClaimsAnewMayBringThePolicyAgain makes the policy arrive a moment after the
// claim.
func TestWhoClaimsAnewMayBringThePolicyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := laidLeft(true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go l.WatchLeft(ctx)
		l.with(func() { l.claimed["a"] = false })
		l.delete("a")
		time.Sleep(lookAgain / 2)
		l.with(func() { l.claimed["a"] = true })
		time.Sleep(lookAgain)
		synctest.Wait()
		if l.Get("a") == nil {
			t.Error("the policy is in force no more")
		}
	})
}

func TestWhatIsLeftIsToldAsItWasStored(t *testing.T) {
	l := laidLeft(false)
	if left, release := l.Hold("a"); left != nil {
		t.Errorf("of what is not left: %+v", left)
	} else {
		release()
	}
	l.claimed["a"] = false
	l.delete("a")
	left, release := l.Hold("a")
	defer release()
	if left == nil || string(left.Document) != closed || left.Target != "a" {
		t.Errorf("got %+v", left)
	}
}
