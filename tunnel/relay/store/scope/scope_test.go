package scope

import (
	"errors"
	"strings"
	"testing"
)

func TestScopeOfDomains(t *testing.T) {
	const base = "tunnel.example.com"
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"shop", "shop.tunnel.example.com", true},
		{"shop", "shop2.tunnel.example.com", false},
		{"shop", "a.shop.tunnel.example.com", false},
		{"shop-*", "shop-1.tunnel.example.com", true},
		{"shop-*", "shop-.tunnel.example.com", true},
		{"shop-*", "shop.tunnel.example.com", false},
		{"shop-*", "shop-1.other.example", false},
		{"a*b*c", "aXbYc.tunnel.example.com", true},
		{"*-dev", "x-dev.tunnel.example.com", true},
		{"*.tunnel.example.com", "x.tunnel.example.com", true},
		{"*.tunnel.example.com", "y.x.tunnel.example.com", true},
		{"*.tunnel.example.com", "tunnel.example.com", false},
		{"*.example", "shop.example", true},
		{"*.example", "badexample", false},
		{"www.shop.example", "www.shop.example", true},
		{"www.shop.example", "api.www.shop.example", false},
		{"w*.shop.example", "www.shop.example", true},
		{"w*.shop.example", "w.a.shop.example", false},
		{"*.w*.example", "x.www.example", false},
	} {
		s := Scope{Domains: []string{c.pattern}}
		if got := s.AllowsDomain(c.name, base); got != c.want {
			t.Errorf("%s for %s: got %v", c.pattern, c.name, got)
		}
	}
	if s := (Scope{}); !s.AllowsDomain("any.example", base) || !s.AllowsPort(1) || !s.AllowsType("udp") {
		t.Error("the zero scope bounds something")
	}
	if s := (Scope{Types: []string{"http"}, Ports: []string{"20000-20010", "25565"}}); s.AllowsType("https") || !s.AllowsPort(20010) || !s.AllowsPort(25565) || s.AllowsPort(20011) {
		t.Error("types or ports")
	}
}

func TestScopesThatAreRefused(t *testing.T) {
	for field, s := range map[string]Scope{
		"scope.types[1]":           {Types: []string{"HTTP", "ftp"}},
		"scope.domains[0]":         {Domains: []string{"a.*.example"}},
		"scope.domains[1]":         {Domains: []string{"shop", "*"}},
		"scope.ports[0]":           {Ports: []string{"5-1"}},
		"scope.ports[1]":           {Ports: []string{"80", "70000"}},
		"scope.tunnels":            {Tunnels: -1},
		"scope.bandwidth":          {Bandwidth: 3},
		"scope.monthly_bytes":      {Monthly: -1},
		"scope.over_quota":         {OverQuota: "explode"},
		"scope.throttle_bandwidth": {Throttle: 1},
	} {
		var fault *Error
		if err := s.Check(); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("got %v, want a fault of %s", err, field)
		}
	}
}

func TestGivenNamesAreWhereTheScopeAllowsThem(t *testing.T) {
	const base = "t.example"
	for _, c := range []struct {
		domains []string
		under   string
		exact   int
	}{
		{nil, base, 0},
		{[]string{"*.t.example"}, base, 0},
		{[]string{"shop"}, "", 1},
		{[]string{"*.shop.t.example", "x"}, "shop.t.example", 1},
		{[]string{"*.other.example"}, "", 0},
		{[]string{"shop-*"}, "", 0},
	} {
		under, exact := Scope{Domains: c.domains}.GivenDomain(base)
		if under != c.under || len(exact) != c.exact {
			t.Errorf("%v: got %q, %v", c.domains, under, exact)
		}
	}
}

// FuzzScope checks that an accepted pattern matches at least itself, with something in place
// of each star, and that nothing panics.
func FuzzScope(f *testing.F) {
	f.Add("*.example.com", "shop-1.example.com")
	f.Add("a*b*c", "abc")
	f.Add("*.0*", "0") // was taken, and let nobody in
	f.Fuzz(func(t *testing.T, pattern, name string) {
		others := Scope{Ports: []string{pattern}, Types: []string{pattern}}
		_ = others.Check()
		s := Scope{Domains: []string{pattern}}
		if s.Check() != nil {
			return
		}
		s.AllowsDomain(name, "t.example")
		itself := strings.ReplaceAll(s.Domains[0], "*", "x")
		if !s.AllowsDomain(itself, "t.example") && !s.AllowsDomain(itself+".t.example", "t.example") {
			t.Errorf("%q does not let %q in", pattern, itself)
		}
	})
}
