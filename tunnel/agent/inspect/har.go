package inspect

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/), as far as it is used here.
type (
	har struct {
		Log harLog `json:"log"`
	}
	harLog struct {
		Version string     `json:"version"`
		Creator harName    `json:"creator"`
		Entries []harEntry `json:"entries"`
	}
	harName struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harEntry struct {
		StartedDateTime time.Time   `json:"startedDateTime"`
		Time            float64     `json:"time"`
		Request         harRequest  `json:"request"`
		Response        harResponse `json:"response"`
		Cache           struct{}    `json:"cache"`
		Timings         harTimings  `json:"timings"`
		Comment         string      `json:"comment,omitempty"`
		// For a WebSocket, in the format of Chromium's developer tools.
		ResourceType string       `json:"_resourceType,omitempty"`
		Messages     []harMessage `json:"_webSocketMessages,omitempty"`
	}
	harMessage struct {
		Type   string  `json:"type"` // send, by the visitor, or receive
		Time   float64 `json:"time"` // seconds since 1970
		Opcode int     `json:"opcode"`
		Data   string  `json:"data"` // of opcode 2 in base64
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harRequest struct {
		Method      string    `json:"method"`
		URL         string    `json:"url"`
		HTTPVersion string    `json:"httpVersion"`
		Cookies     []harPair `json:"cookies"`
		Headers     []harPair `json:"headers"`
		QueryString []harPair `json:"queryString"`
		PostData    *harPost  `json:"postData,omitempty"`
		HeadersSize int       `json:"headersSize"`
		BodySize    int64     `json:"bodySize"`
	}
	harPost struct {
		MimeType string    `json:"mimeType"`
		Params   []harPair `json:"params"`
		Text     string    `json:"text"`
		// Encoding is base64 or absent. It is not in the specification, but many programs write and
		// read it for binary bodies.
		Encoding string `json:"encoding,omitempty"`
		Comment  string `json:"comment,omitempty"` // cutBody, or absent
	}
	harResponse struct {
		Status      int        `json:"status"`
		StatusText  string     `json:"statusText"`
		HTTPVersion string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		RedirectURL string     `json:"redirectURL"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int64      `json:"bodySize"`
	}
	harContent struct {
		Size        int64  `json:"size"`
		Compression int64  `json:"compression,omitempty"`
		MimeType    string `json:"mimeType"`
		Text        string `json:"text,omitempty"`
		Encoding    string `json:"encoding,omitempty"`
		Comment     string `json:"comment,omitempty"` // cutBody, or absent
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

// cutBody is the comment on a body of which the archive has at most the beginning.
const cutBody = "cut: adit did not keep all of this body"

// WriteHAR writes the HTTP entries selected by f, oldest first; reveal includes values that are
// otherwise redacted. Entries whose request was never seen are omitted.
func (ins *Inspector) WriteHAR(w io.Writer, f Filter, version string, reveal bool) error {
	if f.Limit == 0 {
		f.Limit = 10_000
	}
	var picked []*entry
	if f.Kind != KindFlow { // an archive holds requests alone
		f.Kind = KindHTTP
		picked = ins.pick(f)
	}
	doc := har{Log: harLog{Version: "1.2", Creator: harName{Name: "adit", Version: version}, Entries: []harEntry{}}}
	frame, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	const end = "]}}" // of the list, the log and all
	if _, err := w.Write(frame[:len(frame)-len(end)]); err != nil {
		return err
	}
	// One by one, so that expanded bodies are not all held in memory together.
	separator := "\n"
	for _, e := range slices.Backward(picked) {
		h := e.har(reveal)
		if h.Request.URL == "" {
			continue // nothing was heard of what was asked for
		}
		text, err := json.Marshal(h)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		separator = ",\n"
	}
	_, err = io.WriteString(w, end+"\n")
	return err
}

func (e *entry) har(reveal bool) harEntry {
	e.mu.Lock()
	first, sent := e.firstByte, e.req.ended || e.upgrade
	e.mu.Unlock()
	d := e.detail(reveal)
	h := harEntry{StartedDateTime: d.Time, Time: d.DurationMillis, Comment: d.Error}
	h.Timings.Wait = d.DurationMillis
	if !first.IsZero() {
		h.Timings.Wait = min(float64(first.Sub(e.start).Microseconds())/1000, d.DurationMillis)
		h.Timings.Receive = d.DurationMillis - h.Timings.Wait
	}
	q := d.Request
	h.Request = harRequest{
		Method: d.Method, URL: d.URL, HTTPVersion: q.Proto, Headers: pairs(q.Headers), Cookies: []harPair{},
		QueryString: []harPair{}, HeadersSize: -1, BodySize: q.Body.Size,
	}
	if u, err := url.Parse(d.URL); err == nil {
		for part := range strings.SplitSeq(u.RawQuery, "&") {
			name, value, _ := strings.Cut(part, "=")
			if name != "" {
				h.Request.QueryString = append(h.Request.QueryString, harPair{unescape(name), unescape(value)})
			}
		}
	}
	cut := q.Body.Truncated || !sent
	if q.Body.Text != "" || q.Body.Base64 != "" || cut {
		h.Request.PostData = &harPost{MimeType: get(q.Headers, "Content-Type"), Params: []harPair{}, Text: q.Body.Text}
		if q.Body.Base64 != "" {
			h.Request.PostData.Text, h.Request.PostData.Encoding = q.Body.Base64, "base64"
		}
		if cut {
			h.Request.PostData.Comment = cutBody
		}
	}
	h.Response = harResponse{Status: d.Status, Cookies: []harPair{}, Headers: []harPair{}, HeadersSize: -1, BodySize: -1}
	if r := d.Response; r != nil {
		parts := strings.SplitN(r.Line, " ", 3)
		h.Response.Status, h.Response.HTTPVersion = d.Status, r.Proto
		if len(parts) == 3 {
			h.Response.StatusText = parts[2]
		}
		h.Response.Headers = pairs(r.Headers)
		h.Response.RedirectURL = get(r.Headers, "Location")
		h.Response.BodySize = r.Body.Size
		h.Response.Content = harContent{Size: r.Body.Size, MimeType: d.ContentType, Text: r.Body.Text}
		if r.Body.Base64 != "" {
			h.Response.Content.Text, h.Response.Content.Encoding = r.Body.Base64, "base64"
		}
		if r.Body.Truncated {
			h.Response.Content.Comment = cutBody
		}
		if r.Body.Encoding != "" {
			h.Response.Content.Size = int64(len(r.Body.Text))
			if r.Body.Base64 != "" {
				h.Response.Content.Size = int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(r.Body.Base64, "="))))
			}
			h.Response.Content.Compression = h.Response.Content.Size - r.Body.Size
		}
	}
	for _, m := range d.Messages {
		h.ResourceType = "websocket"
		h.Messages = append(h.Messages, m.har())
	}
	return h
}

func (m SocketMessage) har() harMessage {
	h := harMessage{Type: "receive", Time: float64(m.Time.UnixMicro()) / 1e6, Opcode: 1, Data: m.Text}
	if m.From == "visitor" {
		h.Type = "send"
	}
	switch {
	case m.Type == messageClose:
		h.Opcode = 8
	case m.Type == messageBinary || m.Base64 != "":
		h.Opcode, h.Data = 2, cmp.Or(m.Base64, base64.StdEncoding.EncodeToString([]byte(m.Text)))
	}
	return h
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

func pairs(headers []Header) []harPair {
	out := make([]harPair, 0, len(headers))
	for _, h := range headers {
		out = append(out, harPair{h.Name, h.Value})
	}
	return out
}

// Limits for an imported file.
const (
	maxHAR        = 64 << 20
	maxHAREntries = 10_000
)

// Errors of ReadHAR that callers branch on.
var (
	// ErrHAR is matched if the file is not a HAR file.
	ErrHAR = errors.New("not a HAR file")
	// ErrOff is returned if the inspector is off.
	ErrOff = errors.New("the inspector is off")
)

// ReadHAR imports the entries of a HAR file, and returns how many there were. If any of them is
// invalid, it imports none.
func (ins *Inspector) ReadHAR(r io.Reader) (int, error) {
	if ins == nil || ins.limits.Memory < 0 {
		return 0, ErrOff
	}
	data, err := io.ReadAll(io.LimitReader(r, maxHAR+1))
	if err != nil {
		return 0, err
	}
	if len(data) > maxHAR {
		return 0, fmt.Errorf("%w: it is larger than %d bytes", ErrHAR, maxHAR)
	}
	var doc har
	if err := json.Unmarshal(data, &doc); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Field != "" {
			return 0, fmt.Errorf("%w: its %s is a %s", ErrHAR, mismatch.Field, mismatch.Value)
		}
		return 0, fmt.Errorf("%w: it is no JSON of that form", ErrHAR)
	}
	if doc.Log.Version == "" || len(doc.Log.Entries) > maxHAREntries {
		return 0, fmt.Errorf("%w: it names no version, or has more than %d entries", ErrHAR, maxHAREntries)
	}
	all := make([]imported, 0, len(doc.Log.Entries))
	for i, h := range doc.Log.Entries {
		one, err := h.read()
		if err != nil {
			return 0, fmt.Errorf("%w: entry %d: %w", ErrHAR, i, err)
		}
		all = append(all, one)
	}
	for _, one := range all {
		ins.list(ins.take(one))
		ins.evict()
	}
	return len(all), nil
}

// imported is a parsed entry of a HAR file.
type imported struct {
	harEntry
	url              *url.URL
	start            time.Time
	reqBody, resBody []byte
}

func (h harEntry) read() (imported, error) {
	u, err := url.Parse(h.Request.URL)
	if err != nil || u.Host == "" {
		return imported{}, errors.New("its URL does not parse")
	}
	if !token(h.Request.Method) {
		return imported{}, errors.New("its method is not one")
	}
	start := h.StartedDateTime.UTC()
	if year := start.Year(); year < 0 || year > 9999 { // JSON has no such time: nothing could be listed any more
		return imported{}, errors.New("its time is out of range")
	}
	reqBody, err := h.Request.PostData.bytes()
	if err != nil {
		return imported{}, err
	}
	resBody := []byte(h.Response.Content.Text)
	if h.Response.Content.Encoding == "base64" {
		if resBody, err = base64.StdEncoding.DecodeString(h.Response.Content.Text); err != nil {
			return imported{}, errors.New("its response does not decode")
		}
	}
	return imported{h, u, start, reqBody, resBody}, nil
}

// take makes an entry from an imported one.
func (ins *Inspector) take(h imported) *entry {
	e := ins.newEntry(Meta{}, KindHTTP)
	e.imported = true
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start = h.start
	e.end = e.start.Add(time.Duration(h.Time * float64(time.Millisecond)))
	e.state, e.method, e.status = stateDone, h.Request.Method, h.Response.Status
	if e.hold(len(h.Request.URL)) {
		e.url = h.Request.URL
	}
	e.keepHead(&e.req, harHead(h.Request.Method+" "+h.url.RequestURI()+" "+harProto(h.Request.HTTPVersion), h.Request.Headers, h.url.Host))
	e.keepBody(&e.req, h.reqBody)
	e.req.truncated = e.req.truncated || h.Request.PostData != nil && h.Request.PostData.Comment == cutBody
	if h.Response.Status > 0 {
		line := harProto(cmp.Or(h.Response.HTTPVersion, h.Request.HTTPVersion)) + " " + strconv.Itoa(h.Response.Status) + " " + http.StatusText(h.Response.Status)
		e.keepHead(&e.res, harHead(line, h.Response.Headers, ""))
		e.keepBody(&e.res, h.resBody)
		e.res.truncated = e.res.truncated || h.Response.Content.Comment == cutBody
	}
	e.req.ended, e.res.ended = true, true
	e.in.Store(int64(len(e.req.head) + e.req.body.size))
	e.out.Store(int64(len(e.res.head) + e.res.body.size))
	return e
}

// harProto returns the HTTP version that a HAR file names; browsers also write h2 and HTTP/2.
// Unknown ones count as HTTP/1.1.
func harProto(name string) string {
	switch strings.ToLower(name) {
	case "http/1.0":
		return "HTTP/1.0"
	case "h2", "http/2", "http/2.0":
		return "HTTP/2.0"
	case "h3", "http/3", "http/3.0":
		return "HTTP/3.0"
	}
	return "HTTP/1.1"
}

func (p *harPost) bytes() ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	if p.Encoding == "base64" {
		b, err := base64.StdEncoding.DecodeString(p.Text)
		if err != nil {
			return nil, errors.New("its request's body does not decode")
		}
		return b, nil
	}
	return []byte(p.Text), nil
}

// harHead writes a head. Fields that do not belong in one are omitted; since bodies in HAR files
// are decoded, so is Content-Encoding.
func harHead(line string, headers []harPair, host string) []byte {
	var b bytes.Buffer
	b.WriteString(line + "\r\n")
	if host != "" {
		b.WriteString("Host: " + host + "\r\n")
	}
	for _, h := range headers {
		switch name := strings.ToLower(h.Name); {
		case !token(h.Name), strings.ContainsAny(h.Value, "\r\n\x00"), host != "" && name == "host",
			name == "content-encoding", name == "transfer-encoding", name == "content-length":
			continue
		}
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}
