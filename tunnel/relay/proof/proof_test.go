package proof

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
)

// zone is a DNS that has some records, and records its queries.
type zone struct {
	txt   map[string]string
	fault error // of names without a record
	asked []string
}

func (z *zone) lookup(_ context.Context, name string) ([]string, error) {
	z.asked = append(z.asked, name)
	if text, ok := z.txt[name]; ok {
		return []string{"v=spf1 -all", text}, nil
	}
	if z.fault != nil {
		return nil, z.fault
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestRecordsProveANameAndAllUnderIt(t *testing.T) {
	z := &zone{txt: map[string]string{}}
	p := New([]byte("key"), z.lookup)
	if p.Value("one") == p.Value("two") || p.Value("one") == New([]byte("other"), z.lookup).Value("one") {
		t.Error("a record is of two clients, or of two relays")
	}
	z.txt["_adit.shop.example."] = p.Value("one")
	for _, c := range []struct {
		name, client string
		want         bool
		asked        []string
	}{
		{"shop.example", "one", true, []string{"_adit.shop.example."}},
		{"a.www.shop.example", "one", true, []string{"_adit.a.www.shop.example.", "_adit.www.shop.example.", "_adit.shop.example."}},
		{"www.shop.example", "two", false, []string{"_adit.www.shop.example.", "_adit.shop.example."}},
		{"f.e.d.c.b.shop.example", "one", false, []string{"_adit.f.e.d.c.b.shop.example.", "_adit.e.d.c.b.shop.example.", "_adit.d.c.b.shop.example.", "_adit.c.b.shop.example."}},
	} {
		z.asked = nil
		if got, err := p.Find(t.Context(), c.name, c.client); got != c.want || err != nil || !slices.Equal(z.asked, c.asked) {
			t.Errorf("%s of %s: got %v, %v, and asked for %q", c.name, c.client, got, err, z.asked)
		}
	}
}

func TestADNSThatDoesNotAnswerIsSaid(t *testing.T) {
	z := &zone{fault: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}
	p := New([]byte("key"), z.lookup)
	if found, err := p.Find(t.Context(), "www.shop.example", "one"); found || !errors.Is(err, z.fault) {
		t.Errorf("got %v, %v", found, err)
	}
	z.txt = map[string]string{"_adit.shop.example.": p.Value("one")} // above a name that has no answer
	if found, err := p.Find(t.Context(), "www.shop.example", "one"); !found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	free := make(chan struct{})
	var holding, held sync.WaitGroup
	held.Add(ofClient)
	for range ofClient {
		holding.Go(func() {
			_ = p.asking.Take(t.Context(), "one", func() error { held.Done(); <-free; return nil })
		})
	}
	held.Wait()
	defer holding.Wait()
	defer close(free)
	if found, err := p.Find(ended, "www.shop.example", "one"); found || !errors.Is(err, context.Canceled) {
		t.Errorf("while as many ask as may: got %v, %v", found, err)
	}
}
