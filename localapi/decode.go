package localapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// decode reads a request's body into v, a pointer to a struct. It accepts only fields of v, spelled
// exactly as in v and each at most once.
func decode(r *http.Request, v any) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return badJSON("the body is empty; send a JSON object")
	}
	return decodeStrict(b, v)
}

// decodeOptional is like decode for a body that may be missing.
func decodeOptional(r *http.Request, v any) error {
	b, err := readBody(r)
	if err != nil || len(b) == 0 {
		return err
	}
	return decodeStrict(b, v)
}

// tooLarge refuses a body over maxBody. A peer that is still sending would miss the answer, so a
// body that is only a little too large is read to its end.
func tooLarge(r *http.Request) error {
	if r.ContentLength <= maxDrain {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &problem{
		status: http.StatusRequestEntityTooLarge, code: codePayloadTooLarge, message: "the body is over 1 MiB",
	}
}

// readBody reads an optional JSON body of at most maxBody.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if len(b) > maxBody {
		return nil, tooLarge(r)
	}
	switch {
	case err != nil:
		return nil, badJSON("the body is incomplete")
	case len(b) == 0:
		return nil, nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, hasCharset := params["charset"]
	if err != nil || kind != "application/json" || hasCharset && !strings.EqualFold(charset, "utf-8") ||
		r.Header.Get("Content-Encoding") != "" || len(r.Header.Values("Content-Type")) > 1 {
		return nil, &problem{
			status: http.StatusUnsupportedMediaType, code: codeMediaType,
			message: "send the body as application/json, in UTF-8 and not compressed",
		}
	}
	return b, nil
}

func badJSON(message string) error {
	return &problem{status: http.StatusBadRequest, code: codeInvalidJSON, message: message}
}

// checkJSON refuses anything that is not JSON of bounded depth.
func checkJSON(b []byte) error {
	if !utf8.Valid(b) {
		return badJSON("the body is not UTF-8")
	}
	if bytes.HasPrefix(b, []byte("\ufeff")) { // some editors and shells write one (RFC 8259, section 8.1)
		return badJSON("the body begins with a byte order mark; remove it")
	}
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return badJSON(fmt.Sprintf("the body is nested deeper than %d levels", maxDepth))
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if !json.Valid(b) {
		var syntax *json.SyntaxError
		if err := json.Unmarshal(b, new(json.RawMessage)); errors.As(err, &syntax) {
			return badJSON(fmt.Sprintf("the body is not JSON: %s, at byte %d", syntax.Error(), syntax.Offset))
		}
		return badJSON("the body is not JSON")
	}
	return nil
}

// checkEscapes refuses valid JSON with an escape that is only half of a character, such as \ud83d
// (RFC 8259, section 8.2): it would be decoded as a character that the sender did not mean.
func checkEscapes(b []byte) error {
	for {
		at := bytes.IndexByte(b, '\\')
		if at < 0 {
			return nil
		}
		b = b[at:]
		half, ok := escaped(b)
		switch {
		case !ok:
			b = b[len(`\n`):]
		case !utf16.IsSurrogate(half):
			b = b[len(`\u0000`):]
		default:
			other, _ := escaped(b[len(`\u0000`):])
			if utf16.DecodeRune(half, other) == unicode.ReplacementChar {
				return badJSON("the body has half of a character: " + string(b[:len(`\u0000`)]))
			}
			b = b[2*len(`\u0000`):]
		}
	}
}

// escaped returns the value of a \u0000 escape at the beginning of b, if there is one.
func escaped(b []byte) (rune, bool) {
	if len(b) < len(`\u0000`) || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

func decodeStrict(b []byte, v any) error {
	if err := checkJSON(b); err != nil {
		return err
	}
	if err := checkEscapes(b); err != nil {
		return err
	}
	if first := bytes.TrimLeft(b, " \t\r\n"); first[0] != '{' {
		return badJSON("the body must be a JSON object")
	}
	if err := checkKeys(b, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		return invalid(mismatch.Field, fmt.Sprintf("%s must be %s, not %s", mismatch.Field, kindName(mismatch.Type), mismatch.Value))
	}
	// The only other error for a valid object is an unknown nested field; encoding/json has no type
	// for it.
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		name = strings.Trim(name, `"`)
		return invalid(name, fmt.Sprintf("%q is not a field here", name))
	}
	return badJSON("the body does not fit: " + err.Error())
}

// checkKeys refuses keys of the outermost object, and of the objects in its lists, that are not
// fields of t, even if only their case differs, and duplicate keys: readers do not agree on which
// of two counts.
func checkKeys(b []byte, t reflect.Type) error {
	known := fieldsOf(t)
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return badJSON("the body is not JSON")
	}
	seen := make(map[string]bool, len(known))
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return badJSON("the body is not JSON")
		}
		name, _ := token.(string)
		if !slices.Contains(known, name) {
			if len(name) > 64 {
				name = name[:64]
			}
			name = strings.ToValidUTF8(name, "")
			if len(known) == 0 {
				return invalid(name, fmt.Sprintf("%q is not a field here: there are none", name))
			}
			return invalid(name, fmt.Sprintf("%q is not a field here; there are %s", name, strings.Join(known, ", ")))
		}
		if seen[name] {
			return invalid(name, name+" is given twice")
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return badJSON("the body is not JSON")
		}
		if inside := itemsOf(t, name); inside != nil {
			var items []json.RawMessage
			_ = json.Unmarshal(value, &items) // what is no list is refused where it is decoded
			for _, item := range items {
				if item[0] != '{' {
					continue
				}
				if err := checkKeys(item, inside); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// itemsOf returns the struct type of the items in the list field called name in t; nil if there is
// no such list.
func itemsOf(t reflect.Type, name string) reflect.Type {
	for field := range t.Fields() {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != name {
			continue
		}
		list := field.Type
		if list.Kind() == reflect.Pointer {
			list = list.Elem()
		}
		if list.Kind() == reflect.Slice && list.Elem().Kind() == reflect.Struct {
			return list.Elem()
		}
	}
	return nil
}

// fieldsOf returns the JSON names of a struct's fields.
func fieldsOf(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number"
}
