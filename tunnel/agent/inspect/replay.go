package inspect

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Errors of Repeat that callers branch on.
var (
	// ErrGone is returned if the entry does not exist.
	ErrGone = errors.New("this entry is not held any more")
	// ErrNotHTTP is returned for flows.
	ErrNotHTTP = errors.New("only HTTP requests can be repeated")
	// ErrCut is returned if the request's body was not kept in full and the edit supplies no other.
	ErrCut = errors.New("the request's body was not kept in full; give one to send")
	// ErrEdit is matched if the edit does not result in a valid request.
	ErrEdit = errors.New("the edit is not a request")
)

// Repeat is a request that is ready to be sent again.
type Repeat struct {
	TunnelID   string
	TunnelPath string // that led it to a service of its own; empty: none did
	Method     string
	Bytes      []byte // the request, as it goes over the wire in HTTP/1.1
	// HTTP2 is set if the request came over HTTP/2, or over a later version, as imported ones may.
	HTTP2       bool
	ContentType string
	// Scheme and Host are those of the address to which an imported request went. If the edit has
	// another Host header, Host is taken from that, including its port if it has one.
	Scheme, Host string
}

// Repeat returns the request of the entry id, changed by edit. The connection must be closed after
// it.
func (ins *Inspector) Repeat(id string, edit Edit) (Repeat, error) {
	e := ins.find(id)
	if e == nil {
		return Repeat{}, ErrGone
	}
	s := e.snapshot()
	if s.summary.Kind != KindHTTP {
		return Repeat{}, ErrNotHTTP
	}
	line, headers := splitHead(s.req.head)
	parts := strings.SplitN(line, " ", 3)
	if len(parts) != 3 {
		return Repeat{}, ErrCut
	}
	method, path, body := parts[0], parts[1], s.req.body
	newBody := edit.Body != nil || edit.BodyBase64 != nil
	switch {
	case edit.Body != nil && edit.BodyBase64 != nil:
		return Repeat{}, editError("body and body_base64 exclude each other")
	case edit.Body != nil:
		body = []byte(*edit.Body)
	case edit.BodyBase64 != nil:
		b, err := base64.StdEncoding.DecodeString(*edit.BodyBase64)
		if err != nil {
			return Repeat{}, editError("body_base64 does not decode")
		}
		body = b
	case s.req.truncated || !s.req.ended:
		return Repeat{}, ErrCut
	}
	if edit.Method != "" {
		method = edit.Method
	}
	if edit.Path != "" {
		path = edit.Path
	}
	if edit.Headers != nil {
		headers = withSecrets(edit.Headers, headers, s.secret)
	}
	scheme, _, _ := strings.Cut(s.url, "://")
	again := Repeat{Scheme: strings.ToLower(scheme), Host: get(headers, "Host"), TunnelID: s.summary.TunnelID, TunnelPath: s.summary.TunnelPath, Method: method, HTTP2: parts[2] == "HTTP/2.0" || parts[2] == "HTTP/3.0", ContentType: get(headers, "Content-Type")}
	return again.build(path, headers, body, newBody)
}

// withSecrets restores the values that an edit only contains in redacted form.
func withSecrets(edited, original []Header, also []string) []Header {
	used := make([]bool, len(original))
	out := make([]Header, 0, len(edited))
	for _, h := range edited {
		if h.Redacted || secret(h.Name, also) && strings.HasSuffix(h.Value, hidden) {
			for i, o := range original {
				if !used[i] && strings.EqualFold(o.Name, h.Name) {
					h.Value, used[i] = o.Value, true
					break
				}
			}
		}
		out = append(out, h)
	}
	return out
}

func (r Repeat) build(path string, headers []Header, body []byte, newBody bool) (Repeat, error) {
	if !token(r.Method) {
		return Repeat{}, editError("the method is not one")
	}
	if path == "" || path[0] != '/' && path != "*" || strings.ContainsAny(path, " \r\n\t\x00") {
		return Repeat{}, editError("the path must begin with / and have no white space")
	}
	var b bytes.Buffer
	b.WriteString(r.Method + " " + path + " HTTP/1.1\r\n")
	host := false
	for _, h := range headers {
		if !token(h.Name) || strings.ContainsAny(h.Value, "\r\n\x00") {
			return Repeat{}, editError("the header " + strconv.Quote(h.Name) + " is not one")
		}
		switch strings.ToLower(h.Name) {
		case "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect":
			continue // of the connection that was
		case "content-encoding":
			if newBody {
				continue // the new body is plain
			}
		case "host":
			host = true
		}
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	if !host {
		b.WriteString("Host: localhost\r\n")
	}
	if len(body) > 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	b.WriteString("Connection: close\r\n\r\n")
	b.Write(body)
	r.Bytes = b.Bytes()
	return r, nil
}

func editError(why string) error { return fmt.Errorf("%w: %s", ErrEdit, why) }

// token reports whether s is a token (RFC 9110 §5.6.2), as methods and field names are.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// Detail returns the newest entry of the tap's connection, once both directions have ended.
func (t *Tap) Detail(reveal bool) (Detail, bool) {
	if t == nil {
		return Detail{}, false
	}
	e := t.ear.cur
	if t.streams != nil {
		e = t.streams.latest()
	}
	if e == nil {
		return Detail{}, false
	}
	return e.detail(reveal), true
}
