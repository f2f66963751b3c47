package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"adit/internal/jsonkeys"
)

// read parses a request's JSON strictly: only known fields, and each only once.
func read(r *http.Request, v any) error {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return &Error{http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json", ""}
	}
	b, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	var first json.RawMessage
	if err != nil || dec.Decode(&first) != nil {
		return badJSON("the body does not parse as JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return badJSON("something follows the JSON document")
	}
	if name := jsonkeys.Twice(first); name != "" {
		return invalid(name, "%s is given twice", name)
	}
	dec = json.NewDecoder(bytes.NewReader(first))
	dec.DisallowUnknownFields()
	return misfit(dec.Decode(v))
}

// misfit returns an error that says how JSON differs from what was expected.
func misfit(err error) error {
	var kind *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Field == "":
		return badJSON("the body must be a JSON object")
	case errors.As(err, &kind):
		return invalid(kind.Field, "%s: must not be a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &when):
		return invalid("", "%q is not a time such as 2026-11-01T00:00:00Z", when.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return invalid(name, "there is no field %s", name)
	}
	return invalid("", "a time must be a string such as 2026-11-01T00:00:00Z") // no other type parses its own JSON
}

func badJSON(message string) error {
	return &Error{http.StatusBadRequest, "invalid_json", message, ""}
}
