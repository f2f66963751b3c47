package wire

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a claim's paths.
const (
	MaxPaths = 32
	MaxPath  = 128 // bytes of one
)

// ClaimPath is a path of a tunnel (http, https) that is served by its own local service. A
// request goes to the longest path that MatchPath matches.
type ClaimPath struct {
	Path string `json:"path"` // decoded, in the form that CheckPaths requires
	// Strip removes the path from the request target that the service sees; X-Forwarded-Prefix
	// then carries the path.
	Strip      bool   `json:"strip,omitempty"`
	HostHeader string `json:"host_header,omitempty"` // instead of the Claim's; empty: the Claim's
	HTTP2      bool   `json:"http2,omitempty"`       // like the Claim's, for this service
	Scheme     string `json:"scheme,omitempty"`      // the same
	Port       int    `json:"port,omitempty"`        // the same
}

// CheckPaths returns an error if paths cannot be the paths of a tunnel.
func CheckPaths(paths []string) error {
	if len(paths) > MaxPaths {
		return fmt.Errorf("there must be at most %d paths", MaxPaths)
	}
	seen := make(map[string]bool, len(paths))
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return err
		}
		if seen[path] {
			return fmt.Errorf("the path %s is given twice", path)
		}
		seen[path] = true
	}
	return nil
}

func checkPath(path string) error {
	switch {
	case len(path) > MaxPath:
		return fmt.Errorf("a path must have at most %d bytes", MaxPath)
	case !utf8.ValidString(path):
		return fmt.Errorf("the path %q is not UTF-8", path)
	case strings.ContainsFunc(path, unicode.IsControl):
		return fmt.Errorf("the path %q has control characters", path)
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("the path %q must begin with /", path)
	case path == "/":
		return fmt.Errorf("/ cannot be a path; requests that match no path go to the tunnel's own local service")
	case strings.HasSuffix(path, "/"):
		return fmt.Errorf("the path %q must not end with /; without it, everything below is included as well", path)
	case strings.ContainsAny(path, "?#"):
		return fmt.Errorf("the path %q must be without a query", path)
	}
	for i := range len(path) {
		if _, size := decoded(path[i:]); size > 1 {
			return fmt.Errorf("the path %q must be written decoded, without %s", path, path[i:i+size])
		}
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		switch segment {
		case "", ".", "..":
			return fmt.Errorf("the path %q must have no segment that is empty or made of dots", path)
		}
	}
	return nil
}

// ComparePaths orders paths so that longer ones come first. The first match of MatchPath is
// then the longest.
func ComparePaths(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}

// MatchPath reports whether path is a prefix of a request's target, segment by segment, and
// how many bytes of the target it covers. Each segment is decoded separately (RFC 3986,
// section 2.4), so an encoded slash does not separate segments. Empty segments and segments
// made of dots are compared literally: what they mean is up to the origin.
func MatchPath(path, target string) (size int, ok bool) {
	at := 0
	for i := range len(path) {
		if at == len(target) {
			return 0, false
		}
		c, n := target[at], 1
		if c == '%' {
			c, n = decoded(target[at:])
		}
		// No segment of path contains a slash or a question mark, so only an encoded slash
		// needs to be distinguished from the end of a segment.
		if c != path[i] || c == '/' && n > 1 {
			return 0, false
		}
		at += n
	}
	return at, at == len(target) || target[at] == '/' || target[at] == '?'
}

// decoded returns the first byte of s, percent-decoded, and how many bytes of s it takes. An
// invalid encoding stands for itself.
func decoded(s string) (c byte, size int) {
	if s[0] != '%' || len(s) < 3 {
		return s[0], 1
	}
	high, ok := hexDigit(s[1])
	low, ok2 := hexDigit(s[2])
	if !ok || !ok2 {
		return s[0], 1
	}
	return high<<4 | low, 3
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// StripPath returns target without its first size bytes, where size comes from MatchPath.
func StripPath(target string, size int) string {
	if rest := target[size:]; rest != "" && rest[0] == '/' {
		return rest
	}
	return "/" + target[size:]
}
