package message

import (
	"bufio"
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"adit/tunnel/wire"
)

// Changes are a tunnel's wire.HeaderChanges of one direction, made ready for
// each message. Nil changes nothing.
type Changes struct {
	fields []change
	names  map[string]bool // of fields
	plain  map[string]bool // the same as CGI reads them
	odd    bool            // one of them is not spelled as CGI would
}

type change struct {
	name  string
	value []string // one, in a slice that nothing can be appended to; nil: the field goes
}

// NewChanges returns nil if c changes nothing.
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

// Has reports whether a field is changed.
func (c *Changes) Has(name string) bool { return c != nil && c.names[name] }

// hides reports whether a visitor's field does not reach the origin: one that is
// changed, or that CGI would read as one, since the origin takes those for the
// tunnel's word.
func (c *Changes) hides(name string) bool {
	return c != nil && (c.names[name] || (c.odd || odd(name)) && c.plain[wire.PlainHeader(name)])
}

// odd reports whether CGI reads a name as that of another field.
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

// write writes the fields of a request that are set.
func (c *Changes) write(w *bufio.Writer) {
	for i := range c.fields {
		if f := &c.fields[i]; f.value != nil {
			header(w, f.name, f.value[0])
		}
	}
}

// Request changes the request that a backend gets by HTTP/2; it is a copy.
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
			r.Header[f.name] = []string{""} // else the transport says its own
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
		if named := h["Connection"]; has(named, f.name) { // the origin's own was for the edge alone
			h["Connection"] = without(named, f.name)
		}
		h[f.name] = f.value
	}
}

// without returns a Connection header that does not name token.
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

// Interim changes an interim answer, which gets no field that it does not have:
// those are for the answer itself.
func (c *Changes) Interim(h http.Header) {
	for _, f := range c.fields {
		if f.value == nil {
			delete(h, f.name)
		} else if _, there := h[f.name]; there {
			h[f.name] = f.value
		}
	}
}

// Proxied changes an answer that came by HTTP/2: its head now, and what comes
// behind the body once that is read. No trailer has a changed field's name, which
// would say what the origin said.
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
