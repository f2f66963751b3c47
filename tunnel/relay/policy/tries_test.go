package policy

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"adit/internal/netblock"
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
	free := holdTries() // what is tried waits
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
	free()
	wg.Wait()
	return rules
}

// TestGuessesLeaveATurnToOthers has somebody guess where a password takes long to try:
// who knows that of another client's policy is among the first to be let in.
func TestGuessesLeaveATurnToOthers(t *testing.T) {
	const many = 40
	salt := []byte("saltsalt")
	sum := argon2.IDKey([]byte("right"), salt, 1, 8<<10, 1, 32)
	users := []User{{
		Name: "ann",
		Hash: fmt.Sprintf("$argon2id$v=19$m=%d,t=1,p=1$%s$%s", 8<<10, base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)),
	}}
	try := func() (func(), bool) { return func() {}, true }
	for _, c := range []struct {
		name     string
		owner    func(i int) string
		from     func(i int) string
		policies int
	}{
		{"at one policy", func(int) string { return "c_crowded" }, eachItsOwn, 1},
		{"at the many policies of a client", func(int) string { return "c_crowded" }, eachItsOwn, many},
		{"from one address at many clients'", func(i int) string { return fmt.Sprint("c_", i) }, oneAddress, many},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := newPasswords("c_other", users)
			crowded := make([]*passwords, c.policies)
			for i := range crowded {
				crowded[i] = newPasswords(c.owner(i), users)
			}
			waiting := func() int {
				hashing.mu.Lock()
				defer hashing.mu.Unlock()
				return len(hashing.waiting)
			}
			come := func(n int) {
				for end := time.Now().Add(30 * time.Second); waiting() < n; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%d of %d tries have come", waiting(), n)
					}
				}
			}
			free := holdTries()
			var wg sync.WaitGroup
			for i := range many {
				wg.Go(func() { crowded[i%c.policies].check(netblock.Of(addr(c.from(i))), "ann", fmt.Sprint(i), try) })
			}
			come(many)
			let := make(chan int, 1)
			wg.Go(func() {
				if v := other.check(netblock.Of(addr("192.0.2.9")), "ann", "right", try); v != rightPassword {
					t.Errorf("the right password: got %v", v)
				}
				let <- waiting()
			})
			come(many + 1)
			free()
			if n := <-let; n < many/2 {
				t.Errorf("the other client's visitor waited until %d of %d tries were left", n, many)
			}
			wg.Wait()
			hashing.mu.Lock()
			defer hashing.mu.Unlock()
			if hashing.free != 2 || len(hashing.clients)+len(hashing.addrs) > 0 {
				t.Errorf("in the end: %d places, %d clients and %d addresses, want 2, 0 and 0", hashing.free, len(hashing.clients), len(hashing.addrs))
			}
		})
	}
}

// TestPasswordsThatAreSetTakeTurnsToo has a client set a great many passwords, which takes
// as long for each as a try.
func TestPasswordsThatAreSetTakeTurnsToo(t *testing.T) {
	free := holdTries()
	set := make(chan error, 1)
	go func() {
		_, err := ParseOf("c_busy", []byte(`{"basic_auth":[{"name":"ann","password":"secret"},{"name":"bob","password":"secret"}]}`))
		set <- err
	}()
	waits := func() bool {
		hashing.mu.Lock()
		defer hashing.mu.Unlock()
		return len(hashing.waiting) == 1 && hashing.clients["c_busy"] != nil
	}
	for end := time.Now().Add(30 * time.Second); !waits(); time.Sleep(time.Millisecond) {
		select {
		case err := <-set:
			t.Fatalf("the passwords are hashed while no place is free: %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatal("nobody waits for a place")
		}
	}
	free()
	if err := <-set; err != nil {
		t.Error(err)
	}
}

func eachItsOwn(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

// holdTries takes all places to try passwords; free gives them back.
func holdTries() (free func()) {
	one := hashing.take("holder one", netip.Prefix{})
	other := hashing.take("holder other", netip.Prefix{})
	return func() { one(); other() }
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
