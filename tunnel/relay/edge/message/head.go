package message

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Head holds what goes into the head of an HTTP/1.1 request besides the visitor's own fields.
type Head struct {
	Host, Target string
	Prefix       string // the path that was stripped from the target; empty: none
	Upgrade      string // the protocols that the visitor asks to change to; empty: none
	Way          *Way
	Changes      *Changes
}

var errUpgrade = errors.New("the protocol to change to is not a name")

// Write writes the head of r.
func (h Head) Write(w *bufio.Writer, r *http.Request) error {
	if h.Upgrade != "" && strings.ContainsFunc(h.Upgrade, func(c rune) bool { return c < ' ' || c > '~' }) {
		return errUpgrade
	}
	write(w, r.Method, " ", h.Target, " HTTP/1.1\r\n")
	header(w, "Host", h.Host)
	connection, changes, prefix := listOf(r.Header["Connection"]), h.Changes, h.Prefix
	for name, values := range r.Header {
		if name == "Content-Length" || name == "Host" || !httpguts.ValidHeaderFieldName(name) || hop(name) || forwarding(name, h.Way.trusted) || connection.has(name) || changes.hides(name) || prefix != "" && name == PrefixHeader {
			continue
		}
		if name == "Expect" && !r.ProtoAtLeast(1, 1) {
			continue // the visitor is not waiting (RFC 9110, section 10.1.1)
		}
		for _, v := range values {
			header(w, name, v)
		}
	}
	if changes != nil {
		changes.write(w)
	}
	h.Way.each(func(name, value string) { header(w, name, value) })
	if prefix != "" {
		header(w, PrefixHeader, prefix)
	}
	if httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		header(w, "Te", "trailers")
	}
	if h.Upgrade != "" {
		header(w, "Connection", "Upgrade")
		header(w, "Upgrade", h.Upgrade)
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
		write(w, "Content-Length: 0\r\n") // many origins require it
	}
	write(w, "\r\n")
	return w.Flush()
}

// WriteEnd writes the last chunk of a request's body, and its trailer (RFC 9112, section
// 7.1.2).
func WriteEnd(w *bufio.Writer, r *http.Request, changes *Changes) error {
	write(w, "0\r\n")
	connection := listOf(r.Header["Connection"])
	for name, values := range r.Trailer {
		if trails(name, connection) && !changes.hides(name) {
			for _, v := range values {
				header(w, name, v)
			}
		}
	}
	write(w, "\r\n")
	return w.Flush()
}

// WriteSwitch writes the head of an answer that changes the protocol.
func WriteSwitch(w *bufio.Writer, h http.Header) error {
	write(w, "HTTP/1.1 101 Switching Protocols\r\n")
	for name, values := range h {
		for _, v := range values {
			header(w, name, v)
		}
	}
	write(w, "\r\n")
	return w.Flush()
}
