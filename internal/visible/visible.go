// Package visible makes text from strangers safe to show: it removes the characters that control a
// screen, change the order of the text around them or cannot be seen at all, and cuts the text to
// the room there is.
package visible

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with each control character, line breaks included, replaced by a dot, and each
// other character that Hidden reports replaced by its number, as in \u202e.
func Text(s string) string {
	if strings.IndexFunc(s, Hidden) < 0 {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsControl(r):
			b.WriteRune('·')
		case Hidden(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines is like Text for text of several lines: line breaks are kept, and a tab becomes as much
// space.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Text(strings.ReplaceAll(strings.TrimSuffix(lines[i], "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// Hidden reports whether a person who looks at r sees something other than r: control characters;
// format characters, including those that change the direction of text (Unicode TR 36, section
// 3.1); line separators; and characters that are drawn as nothing. Spaces of all widths count as
// visible spaces.
func Hidden(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point) ||
		r >= 0x180b && r <= 0x180f || r >= 0xe0100 && r <= 0xe01ef // selectors of variants
}

func escape(r rune) string {
	const digits = "0123456789abcdef"
	n, head := 4, `\u`
	if r > 0xffff {
		n, head = 8, `\U`
	}
	b := []byte(head)
	for n--; n >= 0; n-- {
		b = append(b, digits[r>>(4*n)&0xf])
	}
	return string(b)
}

// Clip returns at most that many bytes of text, with a mark if there was more.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…" // a new string, that does not keep the long one
}
