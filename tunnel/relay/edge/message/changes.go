package message

import (
	"bufio"
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"adit/tunnel/wire"
)

// Changes are a tunnel's wire.HeaderChanges for one direction, prepared for use on every
// message. A nil Changes changes nothing.
type Changes struct {
	fields []change
	names  map[string]bool // names of fields
	plain  map[string]bool // the same names in the form that CGI sees
	odd    bool            // one of them is not spelled in CGI's way
}

type change struct {
	name  string
	value []string // one value, in a slice without spare capacity; nil: remove the field
}

// NewChanges returns c prepared for use, or nil if c changes nothing.
func NewChanges(c wire.HeaderChanges) *Changes {
	if c.IsZero() {
		return nil
	}
	h := &Changes{names: make(map[string]bool), plain: make(map[string]bool)}
	for name, value := range c.All() {
		f := change{name: name}
		if value != "" {
			f.value = []string{value}
		}
		h.fields = append(h.fields, f)
		h.names[name], h.plain[wire.PlainHeader(name)] = true, true
		h.odd = h.odd || odd(name)
	}
	return h
}

// Has reports whether c changes a field.
func (c *Changes) Has(name string) bool { return c != nil && c.names[name] }

// hides reports whether a visitor's field is kept from the origin. That applies to fields that
// c changes and to those that CGI cannot tell from them, since the origin takes their values
// for the tunnel's.
func (c *Changes) hides(name string) bool {
	return c != nil && (c.names[name] || (c.odd || odd(name)) && c.plain[wire.PlainHeader(name)])
}

// odd reports whether CGI would confuse a name with that of another field.
func odd(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		default:
			return true
		}
	}
	return false
}

// write writes the fields that c sets in a request.
func (c *Changes) write(w *bufio.Writer) {
	for i := range c.fields {
		if f := &c.fields[i]; f.value != nil {
			header(w, f.name, f.value[0])
		}
	}
}

// Request changes a request that is sent by HTTP/2, which must be a copy.
func (c *Changes) Request(r *http.Request) {
	for name := range r.Header {
		if c.hides(name) {
			delete(r.Header, name)
		}
	}
	for name := range r.Trailer {
		if c.hides(name) {
			delete(r.Trailer, name)
		}
	}
	for _, f := range c.fields {
		switch {
		case f.value != nil:
			r.Header[f.name] = f.value
		case f.name == "User-Agent":
			r.Header[f.name] = []string{""} // or the transport adds its own
		}
	}
}

// Answer changes the head of an origin's answer.
func (c *Changes) Answer(h http.Header) {
	for _, f := range c.fields {
		if f.value == nil {
			delete(h, f.name)
			continue
		}
		if named := h["Connection"]; has(named, f.name) { // the origin's own field was meant for the edge only
			h["Connection"] = without(named, f.name)
		}
		h[f.name] = f.value
	}
}

// without returns a Connection header with token removed.
func without(connection []string, token string) []string {
	var left []string
	for _, value := range connection {
		for t := range strings.SplitSeq(value, ",") {
			if t = textproto.TrimString(t); !strings.EqualFold(t, token) {
				left = append(left, t)
			}
		}
	}
	return []string{strings.Join(left, ", ")}
}

// Interim changes an interim answer. It adds no fields, since those are meant for the final
// answer.
func (c *Changes) Interim(h http.Header) {
	for _, f := range c.fields {
		if f.value == nil {
			delete(h, f.name)
		} else if _, there := h[f.name]; there {
			h[f.name] = f.value
		}
	}
}

// Proxied changes an answer that came by HTTP/2: its head now, and its trailer once the body
// has been read. Trailers with the name of a changed field are dropped, as they would give the
// origin's value.
func (c *Changes) Proxied(answer *http.Response) {
	c.Answer(answer.Header)
	c.trailer(answer.Trailer)
	answer.Body = &changedBody{ReadCloser: answer.Body, of: answer, changes: c}
}

func (c *Changes) trailer(h http.Header) {
	for name := range h {
		if c.Has(name) {
			delete(h, name)
		}
	}
}

type changedBody struct {
	io.ReadCloser
	of      *http.Response
	changes *Changes
}

func (b *changedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.changes.trailer(b.of.Trailer)
	}
	return n, err
}
