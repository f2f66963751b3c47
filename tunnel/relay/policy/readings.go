package policy

import "strings"

// Limits on the work that a stranger's path may cause. A path beyond them has to be taken
// as any path.
const (
	maxReadings     = 128
	maxReadingBytes = 32 << 10 // in total
)

// reader derives the readings of one request's path, and counts them.
type reader struct{ count, size int }

// readings returns the paths that origins may understand a path as, without duplicates
// and with the original first. Origins differ in what they decode, in what they treat as
// a slash, in how they treat dots, empty segments and parameters, and in the order of
// these steps. It reports false if there are too many readings.
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

// plain reports whether every origin understands a path in the same way, apart from upper
// and lower case.
func plain(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return path == "*" // used by OPTIONS
	}
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_~!$&'()*+,=:@", c) >= 0:
		case c == '/':
			if i > 0 && path[i-1] == '/' {
				return false
			}
		case c == '.': // not alone or at the end of a segment
			if path[i-1] == '/' || path[i-1] == '.' || i+1 == len(path) || path[i+1] == '/' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// others are the changes that origins make to a path.
var others = []func(string) string{
	decoded,
	func(p string) string { return decodedBut(p, "/\\") },
	func(p string) string { return decodedOnly(p, ".") }, // as browsers' URLs do
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
	overlong = strings.NewReplacer("\xc0\xaf", "/", "\xc0\xae", ".", "\xc1\x9c", "\\") // UTF-8 as some decoders accept it
	ignored  = strings.NewReplacer("\t", "", "\r", "", "\n", "")
)

func decoded(p string) string { return decodedBut(p, "") }

// decodedBut decodes everything that is encoded, except for some characters.
func decodedBut(p, kept string) string {
	return decodedIf(p, func(c byte) bool { return strings.IndexByte(kept, c) < 0 })
}

// decodedOnly decodes some characters and leaves the rest.
func decodedOnly(p, chars string) string {
	return decodedIf(p, func(c byte) bool { return strings.IndexByte(chars, c) >= 0 })
}

// decodedIf decodes the characters that pick selects. Invalid encodings are left as they
// are.
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

// digit returns the value of a hexadecimal digit, or a negative number for anything else.
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

// eachSegment applies f to each segment, if the path contains any of signs.
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

// withoutTail removes what Windows ignores at the end of a file name.
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

// withoutDots resolves the segments . and .. (RFC 3986, section 5.2.4).
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

// withoutAuthority treats what follows two slashes as the name of a server, as in a
// relative reference.
func withoutAuthority(p string) string {
	rest, ok := strings.CutPrefix(p, "//")
	if !ok {
		return p
	}
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}
