// Package tomltext recognises mistakes in a TOML file that a parser does not name, both in its text
// and in its keys.
package tomltext

import (
	"strings"
	"unicode"
)

// Slip says what is wrong in the line with that number (the first is 1), or else returns the
// parser's own message.
func Slip(text string, line int, parser string) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return parser
	}
	key, value, _ := strings.Cut(lines[line-1], "=")
	switch at := lines[line-1]; {
	case strings.HasPrefix(parser, "unexpected character") && strings.ContainsAny(at, "“”„«»‘’"):
		return `it has typographic quotes; write straight ones: "`
	case strings.HasPrefix(parser, "expected '='") && strings.Contains(key, ":"):
		return "write = between a key and its value, not a colon"
	case !bare(parser):
	case strings.HasPrefix(strings.TrimSpace(value), "["):
		return `put each text in quotes, such as ["a", "b"]`
	case unquoted(value):
		return `put the value in quotes, such as "value"` // not the value itself, which may be a secret
	}
	return parser
}

// bare reports whether the parser says that what stands there is no value, or is
// more than one.
func bare(parser string) bool {
	for _, begin := range []string{"unexpected character", "expected newline but got", "expected keyword", "expected digit", "strings must be quoted"} {
		if strings.HasPrefix(parser, begin) {
			return true
		}
	}
	return false
}

// unquoted reports whether a value is a text without quotes: nothing else has a
// letter, or what names and addresses are joined by.
func unquoted(value string) bool {
	value, _, _ = strings.Cut(strings.TrimSpace(value), "#")
	return value != "" && !strings.ContainsAny(value, "\"'={") &&
		strings.ContainsFunc(value, func(r rune) bool { return unicode.IsLetter(r) || strings.ContainsRune(".:/*", r) })
}
