package inspect

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parsed is what the list shows of the heads.
type parsed struct {
	host, path, visitor, proto string
	contentType                string
	answered                   bool // the response's head is in it
}

// mostKnown is how many bytes of it an entry keeps in addition to its heads; only visitors with bad
// intentions need more.
const mostKnown = 2 << 10

// size returns its size in bytes.
func (p *parsed) size() int {
	return len(p.host) + len(p.path) + len(p.visitor) + len(p.proto) + len(p.contentType)
}

// short is p within mostKnown, and final.
func (p *parsed) short() *parsed {
	if p.size() > mostKnown {
		const each = mostKnown / 5
		cut := func(s string) string {
			if len(s) <= each {
				return s
			}
			return strings.ToValidUTF8(strings.Clone(s[:each-len("…")]), "") + "…"
		}
		p = &parsed{host: cut(p.host), path: cut(p.path), visitor: cut(p.visitor), proto: cut(p.proto), contentType: cut(p.contentType)}
	}
	p.answered = true
	return p
}

// parsedLocked returns what the heads say, and caches it if it is short. e.mu is held.
func (e *entry) parsedLocked() *parsed {
	if e.known != nil && (e.known.answered || e.res.head == nil) {
		return e.known
	}
	p := &parsed{answered: e.res.head != nil}
	line, rest, _ := bytes.Cut(e.req.head, []byte("\n"))
	_, after, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\r")), []byte(" "))
	if path, _, ok := bytes.Cut(after, []byte(" ")); ok {
		p.path = clean(path)
	}
	p.host = field(rest, "Host")
	p.proto = field(rest, "X-Forwarded-Proto")
	// The edge puts the visitor first and drops what strangers claim.
	visitor, _, _ := strings.Cut(field(rest, "X-Forwarded-For"), ",")
	p.visitor = strings.TrimSpace(visitor)
	_, rest, _ = bytes.Cut(e.res.head, []byte("\n"))
	p.contentType = field(rest, "Content-Type")
	if p.size() <= mostKnown {
		e.known = p
	}
	return p
}

// field returns the first value of a field in the lines of a head.
func field(lines []byte, name string) string {
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\n"))
		if len(line) > len(name) && line[len(name)] == ':' && strings.EqualFold(string(line[:len(name)]), name) {
			return clean(bytes.TrimSpace(line[len(name)+1:]))
		}
	}
	return ""
}

// splitHead returns the first line and the fields of a head.
func splitHead(raw []byte) (string, []Header) {
	line, rest, _ := bytes.Cut(raw, []byte("\n"))
	first := clean(bytes.TrimSuffix(line, []byte("\r")))
	headers := []Header{}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 {
			continue
		}
		headers = append(headers, Header{Name: clean(name), Value: clean(bytes.TrimSpace(value))})
	}
	return first, headers
}

func clean(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func get(headers []Header, name string) string {
	for _, h := range headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// hidden is shown in place of a secret.
const hidden = "(redacted)"

// secret reports whether a field's value would let its reader act as somebody else, or might do so
// because its name is one of also.
func secret(name string, also []string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token":
		return true
	}
	return slices.ContainsFunc(also, func(s string) bool { return strings.EqualFold(s, name) })
}

func redact(headers []Header, also []string) []Header {
	for i, h := range headers {
		if !secret(h.Name, also) || h.Value == "" {
			continue
		}
		headers[i].Redacted = true
		headers[i].Value = hidden
		// The scheme shows what kind of secret it was.
		if scheme, _, ok := strings.Cut(h.Value, " "); ok && strings.HasSuffix(strings.ToLower(h.Name), "authorization") {
			headers[i].Value = scheme + " " + hidden
		}
	}
	return headers
}

// Detail returns one entry in full; reveal shows values that are otherwise redacted.
func (ins *Inspector) Detail(id string, reveal bool) (Detail, bool) {
	e := ins.find(id)
	if e == nil {
		return Detail{}, false
	}
	return e.detail(reveal), true
}

// snapshot is a copy of an entry's data, to be processed without its lock.
type snapshot struct {
	summary  Summary
	proto    string
	url      string
	req, res kept
	secret   []string // Meta.Secret
	prefix   string   // Meta.Prefix
	messages []said
	unheard  int
}

// kept is a copy of a capture.
type kept struct {
	head, body       []byte
	truncated, ended bool
}

func (c *capture) copy() kept {
	return kept{head: c.head, body: c.body.bytes(), truncated: c.truncated, ended: c.ended}
}

func (e *entry) snapshot() snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := snapshot{summary: e.summaryLocked(), url: e.url, secret: e.meta.Secret, prefix: e.meta.Prefix, messages: slices.Clone(e.messages), unheard: e.unheard}
	if e.kind == KindHTTP {
		s.proto = e.parsedLocked().proto
	}
	s.req, s.res = e.req.copy(), e.res.copy()
	return s
}

func (e *entry) detail(reveal bool) Detail {
	s := e.snapshot()
	d := Detail{Summary: s.summary}
	if s.summary.Kind != KindHTTP {
		return d
	}
	d.URL = s.address()
	d.Request = s.req.message(reveal, s.secret, s.summary.BytesIn)
	if s.res.head != nil {
		d.Response = s.res.message(reveal, nil, s.summary.BytesOut)
	}
	for _, m := range s.messages {
		d.Messages = append(d.Messages, m.view())
	}
	d.MessagesMissed = s.unheard
	d.Curl = curl(s, reveal)
	return d
}

// wholeServer stands in place of a path in an OPTIONS request (RFC 9112, section 3.2.4).
const wholeServer = "*"

// address returns the URL that the visitor used.
func (s snapshot) address() string {
	if s.url != "" {
		return s.url
	}
	proto := s.proto
	if proto != "http" && proto != "https" {
		proto = "http"
	}
	if s.summary.Host == "" {
		return ""
	}
	path := s.prefix + s.summary.Path
	if s.summary.Path == wholeServer {
		path = ""
	}
	return proto + "://" + s.summary.Host + path
}

func (c kept) message(reveal bool, secret []string, passed int64) *Message {
	line, headers := splitHead(c.head)
	m := &Message{Line: line, Headers: headers}
	if i := strings.Index(line, "HTTP/"); i >= 0 {
		m.Proto, _, _ = strings.Cut(line[i:], " ")
	}
	m.Body = c.view(headers, passed-int64(len(c.head)))
	if !reveal {
		m.Headers = redact(headers, secret)
	}
	return m
}

// view returns the body in a form that a person can read.
func (c kept) view(headers []Header, size int64) Body {
	b := Body{Size: max(size, int64(len(c.body))), Truncated: c.truncated}
	if !c.truncated && c.ended {
		b.Size = int64(len(c.body)) // without the framing of chunks
	}
	if len(c.body) == 0 {
		return b
	}
	data := c.body
	if encoding := strings.ToLower(get(headers, "Content-Encoding")); encoding != "" && encoding != "identity" {
		if plain, cut, ok := decode(encoding, data); ok {
			data, b.Encoding = plain, encoding
			b.Truncated = b.Truncated || cut
		}
	}
	if text, ok := asText(data, b.Truncated || !c.ended); ok {
		b.Text = text
	} else {
		b.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	return b
}

// asText returns data as text if it is text. Data that was cut may end within a character.
func asText(data []byte, cut bool) (string, bool) {
	if cut {
		for i := 0; i < utf8.UTFMax-1 && len(data) > 0; i++ {
			if r, _ := utf8.DecodeLastRune(data); r != utf8.RuneError {
				break
			}
			data = data[:len(data)-1]
		}
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", false
	}
	return string(data), true
}

// curl returns a shell command that repeats the request. Redacted values are left for the user to
// fill in.
func curl(s snapshot, reveal bool) string {
	line, headers := splitHead(s.req.head)
	method, _, _ := strings.Cut(line, " ")
	url := s.address()
	if method == "" || url == "" || steers(method+url) {
		return ""
	}
	if !reveal {
		headers = redact(headers, s.secret)
	}
	cut := s.req.truncated || !s.req.ended // not all of the body is here
	var b strings.Builder
	b.WriteString("curl")
	if strings.ContainsAny(url, "[]{}") { // to curl they stand for several URLs
		b.WriteString(" --globoff")
	}
	if path, _, _ := strings.Cut(s.summary.Path, "?"); slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		b.WriteString(" --path-as-is")
	}
	switch {
	case method == "HEAD":
		b.WriteString(" --head")
	case method != "GET" || len(s.req.body) > 0 || cut:
		b.WriteString(" --request " + quote(method))
	}
	if s.summary.Path == wholeServer {
		b.WriteString(" \\\n  --request-target " + quote(wholeServer))
	}
	for _, h := range headers {
		switch strings.ToLower(h.Name) {
		case "host", "content-length", "transfer-encoding", "connection", "accept-encoding",
			"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix", "forwarded", "cdn-loop":
			continue // curl's own, or the edge's
		}
		if steers(h.Name + h.Value) {
			continue
		}
		field := h.Name + ": " + h.Value
		if h.Value == "" { // without the semicolon curl would take it for one that it is to leave out
			field = h.Name + ";"
		}
		b.WriteString(" \\\n  --header " + quote(field))
	}
	if len(s.req.body) > 0 || cut {
		if !slices.ContainsFunc(headers, func(h Header) bool { return strings.EqualFold(h.Name, "Content-Type") }) {
			b.WriteString(" \\\n  --header 'Content-Type:'") // else curl says that it is a form's
		}
		if text, ok := asText(s.req.body, false); ok && !cut && !steers(text) {
			b.WriteString(" \\\n  --data-raw " + quote(text))
		} else {
			b.WriteString(" \\\n  --data-binary @body.bin")
		}
	}
	b.WriteString(" \\\n  " + quote(url))
	return b.String()
}

// steers reports whether a terminal that prints s would do more than show it, or show something
// else: text from strangers is printed, and copied into a shell.
func steers(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && r != '\n' && r != '\r' && r != '\t'
	})
}

// quote makes s one word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
