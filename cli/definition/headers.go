package definition

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"adit/internal/visible"
	"adit/localapi/client"
)

// headerFlag collects header changes in curl's format: "Name: value" sets a field, "Name:" removes
// it. An empty flag means that no field is changed.
type headerFlag struct{ fields client.HeaderChanges }

// String implements pflag.Value; there is no default to show.
func (h *headerFlag) String() string { return "" }

// Type implements pflag.Value.
func (h *headerFlag) Type() string { return "'NAME: VALUE'" }

// Set implements pflag.Value.
func (h *headerFlag) Set(text string) error {
	if h.fields == nil {
		h.fields = make(client.HeaderChanges)
	}
	if text == "" {
		return nil
	}
	if !utf8.ValidString(text) {
		return errNotUTF8
	}
	name, value, ok := strings.Cut(text, ":")
	if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); !ok || name == "" {
		return errors.New(`it must be "Name: value", or "Name:" to remove the field`)
	}
	if _, twice := h.fields[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	h.fields[name] = strings.TrimSpace(value)
	return nil
}

// writeHeaders writes a row for each field.
func writeHeaders(w io.Writer, title string, fields client.HeaderChanges) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text := name + ": " + fields[name]
		if fields[name] == "" {
			text = name + " is removed"
		}
		fmt.Fprintf(w, "%s\t%s\n", title, visible.Text(text))
	}
}
