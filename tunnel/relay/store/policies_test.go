package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"adit/tunnel/relay/store/bucket"
)

// TestPolicyIsSetOnTopOfWhatIsThere has a node whose memory lags: what it was asked
// to replace was read at another.
func TestPolicyIsSetOnTopOfWhatIsThere(t *testing.T) {
	s := open(t, t.TempDir())
	errOther := errors.New("another one is there")
	only := func(document string) func(StoredPolicy, bool) error {
		return func(v StoredPolicy, exists bool) error {
			if exists != (document != "") || string(v.Document) != document {
				return errOther
			}
			return nil
		}
	}
	set := func(document, over string) error {
		return s.Policies.SetBy(t.Context(), "domain.a", []byte(document), "", only(over))
	}
	// behind puts the memory back to what it was.
	behind := func(old entry[StoredPolicy]) {
		s.Policies.table.mu.Lock()
		defer s.Policies.table.mu.Unlock()
		s.Policies.table.entries["domain.a"] = old
	}
	memory := func() entry[StoredPolicy] {
		s.Policies.table.mu.RLock()
		defer s.Policies.table.mu.RUnlock()
		return s.Policies.table.entries["domain.a"]
	}
	if err := set(`{"a":1}`, ""); err != nil {
		t.Fatal(err)
	}
	first := memory()
	if err := set(`{"b":1}`, ""); !errors.Is(err, errOther) {
		t.Errorf("a second first one: got %v", err)
	}
	if err := set(`{"b":1}`, `{"a":1}`); err != nil {
		t.Fatal(err)
	}
	behind(first)
	if err := set(`{"c":1}`, `{"a":1}`); !errors.Is(err, errOther) {
		t.Errorf("on top of what is only in the memory: got %v", err)
	}
	behind(first)
	if err := set(`{"c":1}`, `{"b":1}`); err != nil {
		t.Errorf("on top of what only the bucket has: %v", err)
	}
	behind(first)
	if err := s.Policies.DeleteUnless(t.Context(), "domain.a", only(`{"b":1}`)); !errors.Is(err, errOther) {
		t.Errorf("delete what has gone: got %v", err)
	}
	behind(first)
	if err := s.Policies.DeleteUnless(t.Context(), "domain.a", only(`{"c":1}`)); err != nil {
		t.Errorf("delete what only the bucket has: %v", err)
	}
	if err := s.Policies.DeleteUnless(t.Context(), "domain.a", only("")); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("delete nothing: got %v", err)
	}
}

// TestPolicyChangedWhileTheyAreRead has another node change a policy while those
// that are there are being read: what is heard of it last is the change.
func TestPolicyChangedWhileTheyAreRead(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	_, rev, _ := s.Policies.table.get("domain.a")
	written := make(chan struct{})
	var heard []string
	s.Policies.OnValues(func(_ string, v StoredPolicy, _ bool) {
		if heard = append(heard, string(v.Document)); len(heard) > 1 {
			close(written)
			return
		}
		go s.Policies.table.set("domain.a", StoredPolicy{Document: []byte(`{"b":1}`)}, rev+1)
	})
	select {
	case <-written:
	case <-time.After(10 * time.Second):
		t.Fatal("the change was not heard of")
	}
	if want := []string{`{"a":1}`, `{"b":1}`}; !slices.Equal(heard, want) {
		t.Errorf("heard of %v, want %v", heard, want)
	}
}

func TestPolicyOfOneInstantIsAnother(t *testing.T) {
	s := open(t, t.TempDir())
	seen := map[time.Time]bool{}
	for range 50 {
		if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		p, _ := s.Policies.Get("domain.a")
		seen[p.Changed] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 policies have %d times", len(seen))
	}
}

func TestTargetsNameWhatTheyAreMadeOf(t *testing.T) {
	for name, want := range map[string]string{
		"shop.example.com": "domain.shop.example.com", "*.shop.example.com": "domain._.shop.example.com", "localhost": "domain.localhost",
	} {
		if target := TargetDomain(name); target != want || DomainOf(target) != name {
			t.Errorf("%s: target %s, and back %s", name, target, DomainOf(target))
		}
	}
	for _, target := range []string{"tcp.22", "udp.53", "shop.example.com", ""} {
		if name := DomainOf(target); name != "" {
			t.Errorf("%q is of the domain %q", target, name)
		}
	}
}
