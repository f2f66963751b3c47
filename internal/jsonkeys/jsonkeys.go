// Package jsonkeys finds what a JSON document says twice. Readers do not agree on which
// of two counts: of two lists of who is refused, one would be dropped unsaid.
package jsonkeys

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxName bounds the name that Twice returns.
const maxName = 64

// Twice returns the first key that is in an object of valid JSON a second time, at any
// depth, and "" if there is none. Keys that differ in case alone are the same, as
// encoding/json takes them.
func Twice(b []byte) string {
	var open []map[string]bool // of each object and list around; nil for a list
	isKey := false
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if err != nil {
			return "" // the end; whether it is JSON was asked before
		}
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if isKey {
				name := token.(string)
				seen, folded := open[len(open)-1], strings.ToLower(name)
				if seen[folded] {
					return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
				}
				seen[folded], isKey = true, false
				continue
			}
		}
		isKey = len(open) > 0 && open[len(open)-1] != nil
	}
}
