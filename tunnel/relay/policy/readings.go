package policy

import "strings"

// Bounds of the work that a stranger's path may make. What is beyond them may be
// any path.
const (
	maxReadings     = 128
	maxReadingBytes = 32 << 10 // of them all
)

// reader reads the paths of one request, and counts what it makes of them.
type reader struct{ count, size int }

// readings returns the paths that origins may take a path for, each once, the path
// as it was written first. They differ in what they decode, in what they take for a
// slash, and in what they make of dots, empty segments and parameters, and in which
// order. It reports false if there are too many.
func (r *reader) readings(path string) ([]string, bool) {
	if plain(path) {
		return []string{path}, true
	}
	all, known := []string{path}, map[string]bool{path: true}
	r.count, r.size = r.count+1, r.size+len(path)
	for i := 0; i < len(all); i++ {
		for _, other := range others {
			p := other(all[i])
			if !strings.HasPrefix(p, "/") {
				p = "/" + p
			}
			if known[p] {
				continue
			}
			r.count, r.size = r.count+1, r.size+len(p)
			if r.count > maxReadings || r.size > maxReadingBytes {
				return all, false
			}
			known[p] = true
			all = append(all, p)
		}
	}
	return all, true
}

// plain reports whether every origin takes a path for the same, but for upper and
// lower case.
func plain(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return path == "*" // of OPTIONS
	}
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_~!$&'()*+,=:@", c) >= 0:
		case c == '/':
			if i > 0 && path[i-1] == '/' {
				return false
			}
		case c == '.': // not by itself, nor at the end of a segment
			if path[i-1] == '/' || path[i-1] == '.' || i+1 == len(path) || path[i+1] == '/' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// others are what origins do to a path.
var others = []func(string) string{
	decoded,
	func(p string) string { return decodedBut(p, "/\\") },
	func(p string) string { return decodedOnly(p, ".") }, // as browsers' URLs have it
	func(p string) string { return strings.ReplaceAll(p, "\\", "/") },
	func(p string) string { return overlong.Replace(p) },
	func(p string) string { return ignored.Replace(p) },
	func(p string) string { return upTo(p, "\x00?#") },
	func(p string) string { return upTo(p, ";") },
	func(p string) string {
		return eachSegment(p, ";", func(s string) string { s, _, _ = strings.Cut(s, ";"); return s })
	},
	func(p string) string { return eachSegment(p, ". ", withoutTail) },
	collapsed,
	withoutDots,
	withoutAuthority,
}

var (
	overlong = strings.NewReplacer("\xc0\xaf", "/", "\xc0\xae", ".", "\xc1\x9c", "\\") // UTF-8 as some decode it
	ignored  = strings.NewReplacer("\t", "", "\r", "", "\n", "")
)

func decoded(p string) string { return decodedBut(p, "") }

// decodedBut decodes what is encoded, but for some characters.
func decodedBut(p, kept string) string {
	return decodedIf(p, func(c byte) bool { return strings.IndexByte(kept, c) < 0 })
}

// decodedOnly decodes some characters and leaves the rest.
func decodedOnly(p, chars string) string {
	return decodedIf(p, func(c byte) bool { return strings.IndexByte(chars, c) >= 0 })
}

// decodedIf decodes what is picked, and leaves as it is what is encoded wrongly.
func decodedIf(p string, pick func(byte) bool) string {
	if !strings.Contains(p, "%") {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == '%' && i+2 < len(p) {
			high, low := digit(p[i+1]), digit(p[i+2])
			if v := byte(high<<4 | low); high >= 0 && low >= 0 && pick(v) {
				c = v
				i += 2
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// digit is the value of a hexadecimal digit; below zero: it is none.
func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func upTo(p, ends string) string {
	if i := strings.IndexAny(p, ends); i >= 0 {
		return p[:i]
	}
	return p
}

// eachSegment does something to each segment, if the path has any of some signs.
func eachSegment(p, signs string, f func(string) string) string {
	if !strings.ContainsAny(p, signs) {
		return p
	}
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i] = f(s)
	}
	return strings.Join(segments, "/")
}

// withoutTail leaves out what Windows does at the end of a file's name.
func withoutTail(segment string) string {
	if strings.Trim(segment, ".") == "" {
		return segment
	}
	return strings.TrimRight(segment, ". ")
}

func collapsed(p string) string {
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	return p
}

// withoutDots goes where the segments . and .. lead (RFC 3986, section 5.2.4).
func withoutDots(p string) string {
	if !strings.Contains(p, "/.") {
		return p
	}
	segments := strings.Split(strings.TrimPrefix(p, "/"), "/")
	var out []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, s)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

// withoutAuthority takes what follows two slashes for the name of a server, as URLs
// that are read relative to another have it.
func withoutAuthority(p string) string {
	rest, ok := strings.CutPrefix(p, "//")
	if !ok {
		return p
	}
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}
