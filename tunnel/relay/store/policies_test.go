package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/table"
)

// TestPolicyIsSetOnTopOfWhatIsThere has a node whose memory lags: the policy that it is asked
// to replace was read at another node.
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
	set := func(p *Policies, document, over string) error {
		return p.SetBy(t.Context(), "domain.a", []byte(document), "", only(over))
	}
	if err := set(s.Policies, `{"a":1}`, ""); err != nil {
		t.Fatal(err)
	}
	// behind is a node whose memory stays at what is there now.
	behind := make([]*Policies, 4)
	for i := range behind {
		behind[i] = &Policies{over[StoredPolicy](t, s, "policies", deafened), s.Claims, nil}
	}
	if err := set(s.Policies, `{"b":1}`, ""); !errors.Is(err, errOther) {
		t.Errorf("a second first one: got %v", err)
	}
	if err := set(s.Policies, `{"b":1}`, `{"a":1}`); err != nil {
		t.Fatal(err)
	}
	if err := set(behind[0], `{"c":1}`, `{"a":1}`); !errors.Is(err, errOther) {
		t.Errorf("on top of what is only in the memory: got %v", err)
	}
	if err := set(behind[1], `{"c":1}`, `{"b":1}`); err != nil {
		t.Errorf("on top of what only the bucket has: %v", err)
	}
	if err := behind[2].DeleteUnless(t.Context(), "domain.a", only(`{"b":1}`)); !errors.Is(err, errOther) {
		t.Errorf("delete what has gone: got %v", err)
	}
	last := behind[3]
	if v, ok := last.Get("domain.a"); !ok || string(v.Document) != `{"a":1}` {
		t.Fatalf("the memory is not behind: %s, %t", v.Document, ok)
	}
	if err := last.DeleteUnless(t.Context(), "domain.a", only(`{"c":1}`)); err != nil {
		t.Errorf("delete what only the bucket has: %v", err)
	}
	if err := last.DeleteUnless(t.Context(), "domain.a", only("")); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("delete nothing: got %v", err)
	}
}

// TestPolicyChangedWhileTheyAreRead has another node change a policy while the existing ones
// are being read. The change is what listeners are told last.
func TestPolicyChangedWhileTheyAreRead(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	_, rev, _ := s.Policies.table.Get("domain.a")
	written := make(chan struct{})
	var heard []string
	s.Policies.OnValues(func(_ string, v StoredPolicy, _ bool) {
		if heard = append(heard, string(v.Document)); len(heard) > 1 {
			close(written)
			return
		}
		go s.Told(table.Change{Table: "policies", Key: "domain.a", Revision: rev + 1, Value: []byte(`{"document":{"b":1}}`)})
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
