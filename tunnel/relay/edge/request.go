package edge

import (
	"bufio"
	"errors"
	"iter"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

var errUpgrade = errors.New("the protocol to change to is not a name")

// hop reports whether a header belongs to one connection only (RFC 9110,
// section 7.6.1).
func hop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// endToEnd returns the fields of an origin's answer, or those behind its body,
// that are for the visitor; connection is the answer's header of that name. A
// name with a space, which net/http reads, is left out: by HTTP/3 it would break
// the answer.
func endToEnd(fields http.Header, connection []string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for name, values := range fields {
			if hop(name) || has(connection, name) || strings.IndexByte(name, ' ') >= 0 {
				continue
			}
			if !yield(name, values) {
				return
			}
		}
	}
}

// has reports whether a Connection header names token.
func has(connection []string, token string) bool {
	return len(connection) > 0 && httpguts.HeaderValuesContainsToken(connection, token)
}

// writeHead writes the request's head to the stream.
func (x *exchange) writeHead() error {
	r := x.r
	if x.upgrade != "" && strings.ContainsFunc(x.upgrade, func(c rune) bool { return c < ' ' || c > '~' }) {
		return errUpgrade
	}
	host := r.Host
	if x.backend.HostHeader != "" {
		host = x.backend.HostHeader
	}
	w := writers.Get().(*bufio.Writer)
	w.Reset(x.stream.conn)
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	write(w, r.Method, " ", x.backend.target(x.to.target), " HTTP/1.1\r\n")
	header(w, "Host", host)
	connection, changes, prefix := r.Header["Connection"], x.backend.Requests, x.backend.prefix
	for name, values := range r.Header {
		if name == "Content-Length" || name == "Host" || !httpguts.ValidHeaderFieldName(name) || hop(name) || forwarding(name, x.to.forward.trusted) || has(connection, name) || changes.hides(name) || prefix != "" && name == prefixHeader {
			continue
		}
		if name == "Expect" && !r.ProtoAtLeast(1, 1) {
			continue // the visitor waits for nothing (RFC 9110, section 10.1.1)
		}
		for _, v := range values {
			header(w, name, v)
		}
	}
	if changes != nil {
		changes.write(w)
	}
	x.to.forward.each(func(name, value string) { header(w, name, value) })
	if prefix != "" {
		header(w, prefixHeader, prefix)
	}
	if httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		header(w, "Te", "trailers")
	}
	if x.upgrade != "" {
		header(w, "Connection", "Upgrade")
		header(w, "Upgrade", x.upgrade)
	}
	switch {
	case r.ContentLength > 0:
		write(w, "Content-Length: ", strconv.FormatInt(r.ContentLength, 10), "\r\n")
	case r.ContentLength < 0:
		write(w, "Transfer-Encoding: chunked\r\n")
		for name := range r.Trailer {
			if trails(name, connection) && !changes.hides(name) {
				header(w, "Trailer", name)
			}
		}
	case r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch:
		write(w, "Content-Length: 0\r\n") // many origins want it
	}
	write(w, "\r\n")
	return w.Flush()
}

// trails reports whether a request's trailer is passed on: none that a server
// would take for a header which decides (RFC 9110, section 6.5.1), or that the
// request's Connection header names.
func trails(name string, connection []string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidTrailerHeader(name) && !hop(name) && !forwarding(name, false) && !has(connection, name)
}

// header writes one header line; the value cannot end it.
func header(w *bufio.Writer, name, value string) {
	if strings.ContainsAny(value, "\r\n") {
		value = lineBreaks.Replace(value)
	}
	write(w, name, ": ", textproto.TrimString(value), "\r\n")
}

// write writes all of parts; Flush tells if it could not.
func write(w *bufio.Writer, parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")
