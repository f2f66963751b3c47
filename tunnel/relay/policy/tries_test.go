package policy

import (
	"encoding/base64"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
)

// together has many visitors of one address send a password each before any of
// them is tried, and counts what the policy says.
func together(t *testing.T, password func(i int) string) map[string]int {
	t.Helper()
	const visitors = 40
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
	rules := map[string]int{}
	var wg sync.WaitGroup
	now := time.Now()
	for i := range visitors {
		wg.Go(func() {
			d, release := p.Enter(Request{Addr: addr("10.0.0.1"), HTTP: true, User: "ann", Password: password(i), HasUser: true}, now)
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
		if decided+waiting == visitors {
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

func TestGuessesAtTheSameTimeCount(t *testing.T) {
	rules := together(t, func(i int) string { return fmt.Sprintf("guess %d", i) })
	if rules[RuleBasicAuth] > triesBurst || rules[RuleTries] == 0 {
		t.Errorf("got %v, want at most %d guesses tried, and the others refused", rules, triesBurst)
	}
}

func TestOnePasswordAtTheSameTimeIsOneTry(t *testing.T) {
	if rules := together(t, func(int) string { return "right" }); rules[""] != 40 {
		t.Errorf("got %v, want all 40 let in", rules)
	}
}
