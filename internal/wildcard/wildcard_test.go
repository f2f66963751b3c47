package wildcard

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for name, want := range map[string]string{
		"a.shop.example.com":                     "*.shop.example.com",
		"shop.example.com":                       "*.example.com",
		"com":                                    "",
		"*.shop.example.com":                     "",
		"":                                       "",
		".example.com":                           "",
		"a.":                                     "",
		"a.b.shop.example.com":                   "*.b.shop.example.com",
		"a_b.shop.example.com":                   "*.shop.example.com",
		"x-1.shop.example.com":                   "*.shop.example.com",
		"az09.shop.example.com":                  "*.shop.example.com",
		"-a.shop.example.com":                    "",
		"a-.shop.example.com":                    "",
		"a[b.shop.example.com":                   "",
		"a:b:.shop.example.co":                   "",
		strings.Repeat("a", 63) + ".example.com": "*.example.com",
		strings.Repeat("a", 64) + ".example.com": "",
	} {
		if got := Of(name); got != want {
			t.Errorf("Of(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestBaseAndExample(t *testing.T) {
	for name, want := range map[string]struct {
		base    string
		is      bool
		example string
	}{
		"*.shop.example.com": {"shop.example.com", true, "any.shop.example.com"},
		"*.shop":             {"shop", true, "any.shop"},
		"shop.example.com":   {"shop.example.com", false, "shop.example.com"},
		"*shop.example.com":  {"*shop.example.com", false, "*shop.example.com"},
		"*.":                 {"*.", false, "*."},
		"*":                  {"*", false, "*"},
	} {
		base, is := Base(name)
		if base != want.base || is != want.is || Is(name) != want.is || Example(name) != want.example {
			t.Errorf("%q: base %q, %v, example %q; want %+v", name, base, is, Example(name), want)
		}
	}
}
