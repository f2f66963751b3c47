package routing

import (
	"testing"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// attached is a table that serves names, and knows that some are by themselves.
func attached(tb testing.TB, alone map[string]bool, names ...string) *Table {
	tb.Helper()
	table := New(Config{Alone: func(name string) bool { return alone[name] }})
	for _, name := range names {
		f := Face{Target: claims.TargetDomain(name), Slot: claims.SlotTLS, Type: wire.TypeHTTPS, Domain: name}
		table.endpoints[f.Place()] = &Endpoint{Face: f}
		table.count(f, 1)
	}
	return table
}

func TestDomainsAreFoundByWhoseTheyAre(t *testing.T) {
	table := attached(t, map[string]bool{"api.shop.test": true, "own.shop.test": true}, "*.shop.test", "own.shop.test", "shop.test")
	for name, want := range map[string]string{
		"shop.test": "shop.test", "own.shop.test": "own.shop.test", "any.shop.test": "*.shop.test",
		"api.shop.test": "", "deep.any.shop.test": "", "test": "", "": "", "-.shop.test": "", "any.shop.testing": "",
	} {
		got := ""
		if ep := table.Domain(name, claims.SlotTLS); ep != nil {
			got = ep.Domain
		}
		if got != want {
			t.Errorf("%q is served by %q, want %q", name, got, want)
		}
		if table.Domain(name, claims.SlotPlain) != nil {
			t.Errorf("%q is served in the other slot", name)
		}
	}
}

func BenchmarkDomain(b *testing.B) {
	for name, c := range map[string]struct {
		serves []string
		asked  string
	}{
		"a name":                       {[]string{"one.shop.test"}, "one.shop.test"},
		"a name beside a wildcard":     {[]string{"one.shop.test", "*.shop.test"}, "one.shop.test"},
		"a name of a wildcard":         {[]string{"*.shop.test"}, "one.shop.test"},
		"nobody's, without a wildcard": {[]string{"one.shop.test"}, "two.shop.test"},
	} {
		b.Run(name, func(b *testing.B) {
			table := attached(b, nil, c.serves...)
			b.ReportAllocs()
			for b.Loop() {
				table.Domain(c.asked, claims.SlotTLS)
			}
		})
	}
}
