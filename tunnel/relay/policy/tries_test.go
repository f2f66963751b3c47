package policy

import (
	"encoding/base64"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
)

// together has many visitors send a password each before any of them is tried,
// and counts what the policy says.
func together(t *testing.T, visitors int, from, password func(i int) string) map[string]int {
	t.Helper()
	salt := []byte("saltsalt")
	sum := argon2.IDKey([]byte("right"), salt, 1, 64, 1, 32)
	p := New(Document{BasicAuth: []User{{
		Name: "ann",
		Hash: fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s", base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)),
	}}}, nil)
	for range cap(hashing) { // what is tried waits
		hashing <- struct{}{}
	}
	var mu sync.Mutex
	rules, passwords := map[string]int{}, map[string]bool{}
	for i := range visitors {
		passwords[password(i)] = true
	}
	var wg sync.WaitGroup
	now := time.Now()
	for i := range visitors {
		wg.Go(func() {
			d, release := p.Enter(Request{Addr: addr(from(i)), HTTP: true, User: "ann", Password: password(i), HasUser: true}, now)
			release()
			mu.Lock()
			defer mu.Unlock()
			rules[d.Rule]++
		})
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		decided := 0
		for _, n := range rules {
			decided += n
		}
		mu.Unlock()
		p.mu.Lock()
		waiting := p.all
		p.mu.Unlock()
		p.users.mu.Lock()
		trying := len(p.users.trying)
		p.users.mu.Unlock()
		if decided+waiting == visitors && trying == min(waiting, len(passwords)) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d visitors have come", decided+waiting, visitors)
		}
	}
	for range cap(hashing) {
		<-hashing
	}
	wg.Wait()
	return rules
}

// TestTriesOfOnePolicyLeaveAPlaceToOthers has a visitor try many passwords at one
// policy: who knows that of another is not the last to be let in.
func TestTriesOfOnePolicyLeaveAPlaceToOthers(t *testing.T) {
	const many = 40
	salt := []byte("saltsalt")
	sum := argon2.IDKey([]byte("right"), salt, 1, 8<<10, 1, 32)
	users := []User{{
		Name: "ann",
		Hash: fmt.Sprintf("$argon2id$v=19$m=%d,t=1,p=1$%s$%s", 8<<10, base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)),
	}}
	try := func() (func(), bool) { return func() {}, true }
	left := func(p *passwords) int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.trying)
	}
	flooded, other := newPasswords(users), newPasswords(users)
	for range cap(hashing) {
		hashing <- struct{}{}
	}
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() { flooded.check("ann", fmt.Sprint(i), try) })
	}
	for end := time.Now().Add(30 * time.Second); left(flooded) < many; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d tries have come", left(flooded), many)
		}
	}
	let := make(chan int, 1)
	wg.Go(func() {
		if v := other.check("ann", "right", try); v != rightPassword {
			t.Errorf("the right password: got %v", v)
		}
		let <- left(flooded)
	})
	for end := time.Now().Add(30 * time.Second); left(other) < 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the other try has not come")
		}
	}
	for range cap(hashing) {
		<-hashing
	}
	if n := <-let; n < many/4 {
		t.Errorf("the other policy's visitor waited until %d of %d tries were left", n, many)
	}
	wg.Wait()
}

func oneAddress(int) string { return "10.0.0.1" }

func guess(i int) string { return fmt.Sprintf("guess %d", i) }

func TestGuessesAtTheSameTimeCount(t *testing.T) {
	rules := together(t, 40, oneAddress, guess)
	if rules[RuleBasicAuth] > triesBurst || rules[RuleTries] == 0 {
		t.Errorf("got %v, want at most %d guesses tried, and the others refused", rules, triesBurst)
	}
}

func TestOnePasswordAtTheSameTimeIsOneTry(t *testing.T) {
	if rules := together(t, 40, oneAddress, func(int) string { return "right" }); rules[""] != 40 {
		t.Errorf("got %v, want all 40 let in", rules)
	}
}

// One who has many addresses must not keep everybody from being let in for hours.
func TestGuessesFromManyAddressesDoNotQueueWithoutEnd(t *testing.T) {
	rules := together(t, maxTrying+50, func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, i%250) }, guess)
	if rules[RuleBasicAuth] != maxTrying || rules[RuleConnections] != 50 {
		t.Errorf("got %v, want %d guesses tried, and 50 turned away", rules, maxTrying)
	}
}
