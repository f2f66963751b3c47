package relay

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/outlets"
	"adit/tunnel/relay/store/claims"
)

// once returns an expectation that accepts anything. When it is first consulted, it calls
// f: after the current version was read, and before it is replaced.
func once(f func()) console.Expected {
	var asked atomic.Bool
	return func(string) bool {
		if !asked.Swap(true) {
			f()
		}
		return true
	}
}

// TestSecretThatIsSetMeanwhileIsKept makes two operators change a sink: one its secret,
// and the other, who leaves the secret as it is, the events that it gets.
func TestSecretThatIsSetMeanwhileIsKept(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	o := r.operator()
	set := func(document string, e console.Expected) {
		t.Helper()
		if _, err := o.SetSink(t.Context(), "siem", []byte(document), e); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"type":"webhook","url":"https://siem.example.com/","secret":"first"}`, nil)
	set(`{"type":"webhook","url":"https://siem.example.com/","events":["audit"]}`, once(func() {
		set(`{"type":"webhook","url":"https://siem.example.com/","secret":"second"}`, nil)
	}))
	stored, _ := r.store.Sinks.Get("siem")
	if c, err := outlets.Parse(stored); err != nil || c.Secret != "second" || len(c.Events) != 1 || c.Events[0] != "audit" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestPasswordThatIsSetMeanwhileIsKept is the same for a policy: a password that was
// replaced must not come back when something else is changed.
func TestPasswordThatIsSetMeanwhileIsKept(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	o := r.operator()
	set := func(document string, e console.Expected) {
		t.Helper()
		if _, err := o.SetPolicy(t.Context(), "shop", []byte(document), e); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		p, _ := r.store.Policies.Get(claims.TargetDomain("shop.relay.test"))
		var d struct {
			Users []struct{ Hash string } `json:"basic_auth"`
		}
		if err := json.Unmarshal(p.Document, &d); err != nil || len(d.Users) != 1 {
			t.Fatalf("got %s, %v", p.Document, err)
		}
		return d.Users[0].Hash
	}
	var second string
	set(`{"basic_auth":[{"name":"ann","password":"first one"}]}`, nil)
	first := hash()
	set(`{"rate":9,"basic_auth":[{"name":"ann"}]}`, once(func() {
		set(`{"basic_auth":[{"name":"ann","password":"second one"}]}`, nil)
		second = hash()
	}))
	if got := hash(); got != second {
		t.Errorf("the password is another: the first one's is %v", got == first)
	}
	if p, err := o.Policy("shop"); err != nil || p.Policy.Rate != 9 {
		t.Errorf("got %+v, %v", p, err)
	}
}
