package origin

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// mend repairs the head of an answer that net/http rejects but browsers accept, so that it can
// be read again. It reports false if it cannot. The stream is not reused after this answer,
// since the field that gives the answer's end is malformed.
func (s *Stream) mend() bool {
	raw := s.head.Bytes()
	if !bytes.HasPrefix(raw, []byte("HTTP/")) && !bytes.HasPrefix(raw, []byte(icy)) {
		return false
	}
	end, line := headEnd(raw, 0)
	for end < 0 {
		var more [512]byte
		if _, err := s.Read(more[:]); err != nil {
			return false
		}
		raw = s.head.Bytes()
		end, line = headEnd(raw, line)
	}
	head := mended(string(raw[:end]))
	behind := bytes.Clone(raw[end:])
	s.head.Reset()
	s.head.WriteString(head)
	s.br.Reset(io.MultiReader(strings.NewReader(head), bytes.NewReader(behind), s))
	return true
}

// headEnd returns the length of the head at the beginning of b, where at is the index of the
// start of some line in it. If the end of the head is not in b, end is negative and last is
// the start of the last line.
func headEnd(b []byte, at int) (end, last int) {
	for {
		n := bytes.IndexByte(b[at:], '\n')
		if n < 0 {
			return -1, at
		}
		line := b[at : at+n]
		at += n + 1
		if len(line) == 0 || len(line) == 1 && line[0] == '\r' {
			return at, at
		}
	}
}

// icy begins the answers of SHOUTcast servers, which are otherwise HTTP/1.0.
const icy = "ICY "

// mended returns a head without the things that browsers overlook: lines that are not fields,
// values that no field may have, invalid lengths, and transfer encodings that are given twice
// (as happens if an application and the server below it both do so) or have no effect
// ("identity").
func mended(head string) string {
	status, rest, _ := strings.Cut(head, "\n")
	if strings.HasPrefix(status, icy) {
		status = "HTTP/1.0 " + status[len(icy):]
	}
	var fields, lengths, encodings []string
	keep := false // the previous field was kept, and continuation lines may follow
	for line := range strings.SplitSeq(rest, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if keep && httpguts.ValidHeaderFieldValue(line) {
				fields = append(fields, line)
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		keep = ok && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
		switch {
		case !keep:
		case strings.EqualFold(name, "Content-Length"):
			lengths, keep = append(lengths, list(value)...), false
		case strings.EqualFold(name, "Transfer-Encoding"):
			encodings, keep = append(encodings, list(value)...), false
		default:
			fields = append(fields, line)
		}
	}
	lengths = slices.DeleteFunc(lengths, func(l string) bool { return l == "" || strings.Trim(l, "0123456789") != "" })
	for _, l := range slices.Compact(lengths) {
		fields = append(fields, "Content-Length: "+l)
	}
	encodings = slices.DeleteFunc(encodings, func(e string) bool { return e == "" || e == "identity" })
	if encodings = slices.Compact(encodings); len(encodings) > 0 {
		fields = append(fields, "Transfer-Encoding: "+strings.Join(encodings, ", "))
	}
	return strings.TrimSuffix(status, "\r") + "\r\n" + strings.Join(append(fields, "", ""), "\r\n")
}

// list returns the values in a field's list.
func list(value string) []string {
	all := strings.Split(strings.ToLower(value), ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
