package message

import (
	"bufio"
	"iter"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hop reports whether a header belongs to a single connection (RFC 9110, section 7.6.1).
func hop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// EndToEnd returns the fields of an origin's header or trailer that are meant for the visitor.
// connection is the answer's Connection header. Names that contain a space, which net/http
// accepts, are left out, because over HTTP/3 they would break the answer.
func EndToEnd(fields http.Header, connection []string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		list := listOf(connection)
		for name, values := range fields {
			if hop(name) || list.has(name) || strings.IndexByte(name, ' ') >= 0 {
				continue
			}
			if !yield(name, values) {
				return
			}
		}
	}
}

// has reports whether a Connection header contains token.
func has(connection []string, token string) bool {
	return len(connection) > 0 && httpguts.HeaderValuesContainsToken(connection, token)
}

// list is the set of names in a Connection header, for repeated look-ups.
type list struct {
	values []string
	names  map[string]bool // the same names, if a linear search would take long
}

// listOf parses a Connection header. Strangers write both the header and the names to look up,
// so both may be long.
func listOf(connection []string) list {
	const short = 256
	l, size := list{values: connection}, 0
	for _, value := range connection {
		size += len(value)
	}
	if size <= short {
		return l
	}
	l.names = make(map[string]bool)
	for _, value := range connection {
		for name := range strings.SplitSeq(value, ",") {
			l.names[strings.ToLower(strings.Trim(name, " \t"))] = true
		}
	}
	return l
}

// has reports whether the header contains a field's name.
func (l list) has(name string) bool {
	if l.names != nil {
		return l.names[strings.ToLower(name)]
	}
	return has(l.values, name)
}

// trails reports whether a request's trailer is passed on. It is not if a server might take it
// for a header that controls processing (RFC 9110, section 6.5.1), or if the request's
// Connection header names it.
func trails(name string, connection list) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidTrailerHeader(name) && !hop(name) && !forwarding(name, false) && !connection.has(name)
}

// header writes one header line. The value cannot end the line early.
func header(w *bufio.Writer, name, value string) {
	if strings.ContainsAny(value, "\r\n") {
		value = lineBreaks.Replace(value)
	}
	write(w, name, ": ", textproto.TrimString(value), "\r\n")
}

// write writes all parts. Errors show up when w is flushed.
func write(w *bufio.Writer, parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")
