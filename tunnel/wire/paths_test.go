package wire

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestPathsThatAreNone(t *testing.T) {
	many := make([]string, MaxPaths+1)
	for i := range many {
		many[i] = fmt.Sprintf("/%d", i)
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"/api", "/api/v2", "/Api", "/a b", "/50%", "/é", "/a=b,strip", "/...", many[0]}, ""},
		{[]string{"/" + strings.Repeat("a", MaxPath-1)}, ""},
		{many[:MaxPaths], ""},
		{many, "there must be at most 32 paths"},
		{[]string{"/" + strings.Repeat("a", MaxPath)}, "a path must have at most 128 bytes"},
		{[]string{"/a", "/b", "/a"}, "the path /a is given twice"},
		{[]string{""}, `the path "" must begin with /`},
		{[]string{"api"}, `the path "api" must begin with /`},
		{[]string{"/"}, "/ cannot be a path; requests that match no path go to the tunnel's own local service"},
		{[]string{"/api/"}, `the path "/api/" must not end with /; without it, everything below is included as well`},
		{[]string{"//api"}, `the path "//api" must have no segment that is empty or made of dots`},
		{[]string{"/a//b"}, `the path "/a//b" must have no segment that is empty or made of dots`},
		{[]string{"/a/../b"}, `the path "/a/../b" must have no segment that is empty or made of dots`},
		{[]string{"/."}, `the path "/." must have no segment that is empty or made of dots`},
		{[]string{"/a\x00"}, `the path "/a\x00" has control characters`},
		{[]string{"/a\u0085"}, `the path "/a\u0085" has control characters`},
		{[]string{"/a\xff"}, `the path "/a\xff" is not UTF-8`},
		{[]string{"/a?b"}, `the path "/a?b" must be without a query`},
		{[]string{"/a#b"}, `the path "/a#b" must be without a query`},
		{[]string{"/a%2fb"}, `the path "/a%2fb" must be written decoded, without %2f`},
	} {
		got := ""
		if err := CheckPaths(c.paths); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%.60q: got %s, want %s", c.paths, got, c.want)
		}
	}
}

var pathMatches = []struct {
	path, target string
	rest         string // without the path; empty: it does not match
}{
	{"/api", "/api", "/"},
	{"/api", "/api/", "/"},
	{"/api", "/api?q=/x", "/?q=/x"},
	{"/api", "/api/x?q", "/x?q"},
	{"/api", "/api//x", "//x"},
	{"/api", "/api/../x", "/../x"},
	{"/api", "/api/a%2Fb%2e", "/a%2Fb%2e"},
	{"/api", "/%61p%69/x", "/x"},
	{"/api/v2", "/api/v2/x", "/x"},
	{"/a b", "/a%20b/x", "/x"},
	{"/é", "/%c3%A9?", "/?"},
	{"/50%", "/50%25/x", "/x"},
	{"/50%", "/50%", "/"},
	{"/50%z", "/50%z", "/"},
	{"/api", "/apis", ""},
	{"/api", "/ap", ""},
	{"/api", "/Api", ""},
	{"/api", "/", ""},
	{"/api", "*", ""},
	{"/api", "", ""},
	{"/api", "//api", ""},
	{"/api", "/./api", ""},
	{"/api", "/x/../api", ""},
	{"/api", "/api%2Fx", ""},
	{"/api", "/api%3Fx", ""},
	{"/api", "/api;v=1", ""},
	{"/api", "%2Fapi", ""},
	{"/api/v2", "/api%2Fv2", ""},
	{"/api/v2", "/api/v2x", ""},
	{"/api/v2", "/api/", ""},
	{"/50%", "/50%2", ""},
	{"/a%zz", "/a%zz", "/"},
	{"/a%@0", "/a%@0", "/"},
	{"/a%2z", "/a%2z", "/"},
	{"/a%zC", "/a%zC", "/"},
	{"/aO", "/a%4F", "/"},
}

func TestMatchPath(t *testing.T) {
	for _, c := range pathMatches {
		size, ok := MatchPath(c.path, c.target)
		rest := ""
		if ok {
			rest = StripPath(c.target, size)
		}
		if rest != c.rest {
			t.Errorf("%s in %s: got %q, want %q", c.path, c.target, rest, c.rest)
		}
	}
	all := true
	if n := testing.AllocsPerRun(100, func() {
		_, ok := MatchPath("/api/v2", "/api/v%32/x?q")
		all = all && ok
	}); n != 0 || !all {
		t.Errorf("%v allocations", n)
	}
}

func TestLongerPathsComeFirst(t *testing.T) {
	list := []string{"/a", "/b", "/a/b", "/abc/d", "/a/b/c"}
	slices.SortFunc(list, ComparePaths)
	if got := strings.Join(list, " "); got != "/a/b/c /abc/d /a/b /a /b" {
		t.Errorf("got %s", got)
	}
}

// FuzzMatchPath compares the result with splitting into segments first and decoding them
// afterwards.
func FuzzMatchPath(f *testing.F) {
	for _, c := range pathMatches {
		f.Add(c.path, c.target)
	}
	f.Fuzz(func(t *testing.T, path, target string) {
		if CheckPaths([]string{path}) != nil {
			return
		}
		size, ok := MatchPath(path, target)
		raw, query, asked := strings.Cut(target, "?")
		want, have := strings.Split(path, "/"), strings.Split(raw, "/")
		matches := len(have) >= len(want)
		for i := range want {
			if !matches {
				break
			}
			segment, err := url.PathUnescape(have[i])
			if err != nil {
				return // what servers make of it differs
			}
			matches = segment == want[i]
		}
		if matches != ok {
			t.Fatalf("%q in %q: got %v, want %v", path, target, ok, matches)
		}
		if !ok {
			return
		}
		rest := StripPath(target, size)
		left := "/" + strings.Join(have[len(want):], "/")
		if asked {
			left += "?" + query
		}
		if rest != left {
			t.Fatalf("%q out of %q: got %q, want %q", path, target, rest, left)
		}
	})
}

func TestPrefaceOfAPathThatIsNone(t *testing.T) {
	if b, err := AppendPreface(nil, Preface{Kind: StreamHTTP, Path: "/" + strings.Repeat("a", MaxPath)}); err == nil {
		t.Errorf("got %d bytes, want an error", len(b))
	}
	good, err := AppendPreface(nil, Preface{Kind: StreamHTTP, Path: "/api"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPreface(bytes.NewReader(bytes.Replace(good, []byte("/api"), []byte("/ap\xff"), 1))); err == nil || err.Error() != "malformed stream header: the path is none" {
		t.Errorf("got %v", err)
	}
}
