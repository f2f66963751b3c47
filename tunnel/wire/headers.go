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

// Limits of HeaderChanges, for one direction.
const (
	MaxHeaders     = 32
	MaxHeaderBytes = 8 << 10 // of all names and values together
)

// Direction says which messages HeaderChanges are for.
type Direction int

// Directions.
const (
	Requests  Direction = iota // to the origin
	Responses                  // to the visitor
)

// HeaderChanges are the header fields that the edge changes in messages passing through. Each
// field is either set to a value, which replaces any it has, or removed, if the value is
// empty. The zero value changes nothing. Two sets of the same changes compare equal with ==.
// The JSON form is an object of names and values, where null means an empty value. Decoding
// does not validate the changes; Check does.
type HeaderChanges struct {
	text string // the JSON object, with canonical names in sorted order; empty for none
}

type headerChange struct{ name, value string }

// ChangeHeaders returns the changes described by fields.
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

// appendString appends s as a JSON string, without escaping HTML characters.
func appendString(b []byte, s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // encoding a string never fails
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// IsZero reports whether c changes nothing.
func (c HeaderChanges) IsZero() bool { return c.text == "" }

// All returns the fields in order of name; an empty value means that the field is removed.
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
	list, _ := parse([]byte(c.text)) // pack wrote it, so it parses
	return list
}

// Check returns an error if these changes cannot be made to messages of direction d.
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

// fixed reports whether a field must not be changed. That covers fields that belong to one
// connection (RFC 9110, section 7.6.1), that say where a message ends, or that the edge sets
// itself. It also covers names that CGI (RFC 3875, section 4.1.18) and its successors cannot
// tell from one of these.
func fixed(name string, d Direction) bool {
	name = PlainHeader(name)
	switch name {
	case "connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
		"proxy-authenticate", "proxy-authorization", "proxy-authentication-info", "http2-settings":
		return true
	case "host", "expect", "forwarded", "x-real-ip", "cdn-loop",
		"proxy": // CGI turns it into HTTP_PROXY, which programs obey
		return d == Requests
	case "alt-svc", "date":
		return d == Responses
	}
	return strings.HasPrefix(name, "sec-websocket-") || strings.HasPrefix(name, "x-forwarded-") && d == Requests
}

// PlainHeader returns a field's name in the form in which CGI and its successors see it: they
// distinguish neither upper from lower case, nor a hyphen from other characters that are not
// letters or digits.
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

// kindOf returns the kind of JSON value in b, named as encoding/json names it.
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

// LogValue leaves out the values, which may be secrets.
func (c HeaderChanges) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String returns the names only, so that printing the value by mistake reveals no secrets.
func (c HeaderChanges) String() string {
	var names []string
	for name := range c.All() {
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
