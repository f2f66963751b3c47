// Package tomltext reads what a person saved as TOML with whatever editor there
// was, and knows the slips that a parser does not name: in the text and in keys.
package tomltext

import (
	"bytes"
	"errors"
	"strings"
)

// Of is the text of a file.
func Of(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "", errors.New("it is in UTF-16: save it as UTF-8")
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil // what editors of Windows begin a file with
}

// Slip says what was slipped into the line of that number (the first is 1), or
// else what the parser says of it.
func Slip(text string, line int, parser string) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return parser
	}
	key, _, _ := strings.Cut(lines[line-1], "=")
	switch at := lines[line-1]; {
	case strings.HasPrefix(parser, "unexpected character") && strings.ContainsAny(at, "“”„«»‘’"):
		return `it has typographic quotes; write straight ones: "`
	case strings.HasPrefix(parser, "expected '='") && strings.Contains(key, ":"):
		return "a key and its value have = between them, not a colon"
	}
	return parser
}
