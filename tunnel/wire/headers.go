package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Bounds of HeaderChanges, for one direction.
const (
	MaxHeaders     = 32
	MaxHeaderBytes = 8 << 10 // of names and values together
)

// Direction says which messages HeaderChanges are for.
type Direction int

// Directions.
const (
	Requests  Direction = iota // to the origin
	Responses                  // to the visitor
)

// HeaderChanges are header fields that the edge changes in what passes: each is
// set to a value, in place of what is there, or removed if its value is empty.
// The zero value changes nothing. Two that do the same are ==. As JSON it is an
// object of names and values, where null is an empty value; what was read is not
// yet known to be possible, which Check tells.
type HeaderChanges struct {
	text string // the JSON object, its names in their canonical case and sorted; empty for none
}

type headerChange struct{ name, value string }

// ChangeHeaders returns the changes that fields say.
func ChangeHeaders(fields map[string]string) HeaderChanges {
	list := make([]headerChange, 0, len(fields))
	for name, value := range fields {
		list = append(list, headerChange{name, value})
	}
	return pack(list)
}

func pack(list []headerChange) HeaderChanges {
	if len(list) == 0 {
		return HeaderChanges{}
	}
	for i := range list {
		list[i].name = http.CanonicalHeaderKey(list[i].name)
	}
	slices.SortFunc(list, func(a, b headerChange) int {
		return strings.Compare(a.name+"\x00"+a.value, b.name+"\x00"+b.value)
	})
	text := []byte{'{'}
	for i, c := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, c.name), ':')
		text = appendString(text, c.value)
	}
	return HeaderChanges{text: string(append(text, '}'))}
}

// appendString appends s as JSON has it, and no longer than need be.
func appendString(b []byte, s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // of a string there is no error
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// IsZero reports whether nothing is changed.
func (c HeaderChanges) IsZero() bool { return c.text == "" }

// All returns the fields by name, in order; an empty value is of one that is to go.
func (c HeaderChanges) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, f := range c.list() {
			if !yield(f.name, f.value) {
				return
			}
		}
	}
}

func (c HeaderChanges) list() []headerChange {
	if c.IsZero() {
		return nil
	}
	list, _ := parse([]byte(c.text)) // pack wrote it
	return list
}

// Check says why these changes cannot be made in messages of direction d.
func (c HeaderChanges) Check(d Direction) error {
	list := c.list()
	if len(list) > MaxHeaders {
		return fmt.Errorf("there must be at most %d fields", MaxHeaders)
	}
	size := 0
	for _, f := range list {
		size += len(f.name) + len(f.value)
	}
	if size > MaxHeaderBytes {
		return fmt.Errorf("names and values must have at most %d bytes together", MaxHeaderBytes)
	}
	for i, f := range list {
		name := f.name
		if len(name) > 64 {
			name = strings.ToValidUTF8(name[:64], "") + "…"
		}
		switch {
		case !httpguts.ValidHeaderFieldName(f.name):
			return fmt.Errorf("%q is not the name of a header field", name)
		case i > 0 && list[i-1].name == f.name:
			return fmt.Errorf("%s is given twice", name)
		case d == Requests && f.name == "Host":
			return fmt.Errorf("%s is not changed here; use host_header", name)
		case fixed(f.name, d):
			return fmt.Errorf("%s cannot be changed: it belongs to the connection, or the relay sets it", name)
		case !httpguts.ValidHeaderFieldValue(f.value):
			return fmt.Errorf("the value of %s has control characters", name)
		case strings.Trim(f.value, " \t") != f.value:
			return fmt.Errorf("the value of %s begins or ends with white space", name)
		}
	}
	return nil
}

// fixed reports whether a field is not to be changed: those that belong to one
// connection (RFC 9110, section 7.6.1), that say where a message ends, or what the
// edge itself says. Names that CGI (RFC 3875, section 4.1.18) and what follows it
// read as one of them are fixed, too.
func fixed(name string, d Direction) bool {
	name = PlainHeader(name)
	switch name {
	case "connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
		"proxy-authenticate", "proxy-authorization", "proxy-authentication-info", "http2-settings":
		return true
	case "host", "expect", "forwarded", "x-real-ip", "cdn-loop",
		"proxy": // CGI makes HTTP_PROXY of it, which programs obey
		return d == Requests
	case "alt-svc", "date":
		return d == Responses
	}
	return strings.HasPrefix(name, "sec-websocket-") || strings.HasPrefix(name, "x-forwarded-") && d == Requests
}

// PlainHeader is what CGI and what follows it read a field's name as: they do not
// tell letters of two cases apart, nor a hyphen and what is neither letter nor digit.
func PlainHeader(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		}
		return '-'
	}, name)
}

// MarshalJSON implements json.Marshaler.
func (c HeaderChanges) MarshalJSON() ([]byte, error) {
	if c.IsZero() {
		return []byte("{}"), nil
	}
	return []byte(c.text), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *HeaderChanges) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	list, err := parse(b)
	if err != nil {
		return err
	}
	*c = pack(list)
	return nil
}

func parse(b []byte) ([]headerChange, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, &json.UnmarshalTypeError{Value: kindOf(b), Type: reflect.TypeFor[map[string]string]()}
	}
	var list []headerChange
	for d.More() {
		var raw json.RawMessage
		token, err := d.Token()
		if err == nil {
			err = d.Decode(&raw)
		}
		if err != nil {
			return nil, err
		}
		name, value := token.(string), ""
		if raw[0] != '"' && raw[0] != 'n' {
			return nil, &json.UnmarshalTypeError{Value: kindOf(raw), Type: reflect.TypeFor[string](), Field: name[:min(len(name), 64)]}
		}
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		list = append(list, headerChange{name, value})
	}
	return list, nil
}

// kindOf names what kind of JSON b is, as encoding/json does.
func kindOf(b []byte) string {
	switch b[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

// LogValue leaves the values out, which may be secrets.
func (c HeaderChanges) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String is the names alone, for whoever prints the value.
func (c HeaderChanges) String() string {
	var names []string
	for name := range c.All() {
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
