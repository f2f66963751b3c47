// Package terminal describes the user's terminal: its size, how wide it draws text, and where lines
// wrap. What is shown there is left to other packages.
package terminal

import (
	"strings"
	"unicode"
)

// Size is how much a person sees at once. Zero means unknown.
type Size struct{ Columns, Rows int }

// Fit lays out what a screen shows. Lines that are too long are wrapped, and what is above the
// bottom line counts. Of the list, only the newest entries have to be visible.
func (s Size) Fit(head, list []string) string {
	var above []string
	for _, line := range head {
		above = append(above, s.wrap(line)...)
	}
	if most := s.Rows - 1; s.Rows > 1 { // the cursor's line would make it scroll
		if len(above) > most {
			above = above[:most]
		}
		if room := most - len(above); len(list) > room {
			list = list[len(list)-room:]
		}
	}
	var b strings.Builder
	for _, lines := range [][]string{above, list} {
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// wrap breaks a line as a terminal would.
func (s Size) wrap(line string) []string {
	if s.Columns == 0 {
		return []string{line}
	}
	var lines []string
	begin, used := 0, 0
	for i, r := range line {
		w := columnsOf(r)
		if used+w > s.Columns && i > begin {
			lines = append(lines, line[begin:i])
			begin, used = i, 0
		}
		used += w
	}
	return append(lines, line[begin:])
}

// Cut returns line cut to at most that many columns, with an ellipsis for what is missing.
func Cut(line string, columns int) string {
	used, end := 0, 0 // end is where the ellipsis would come
	for i, r := range line {
		if used <= columns-1 {
			end = i
		}
		if used += columnsOf(r); used > columns {
			return line[:end] + "…"
		}
	}
	return line
}

// Pad returns line padded to at least that many columns.
func Pad(line string, columns int) string {
	return line + strings.Repeat(" ", max(columns-Columns(line), 0))
}

// Columns returns how wide a terminal draws a line.
func Columns(line string) (columns int) {
	for _, r := range line {
		columns += columnsOf(r)
	}
	return columns
}

// columnsOf returns how wide a terminal draws r (Unicode Standard Annex 11, roughly).
func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.Mn, r):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= 0x3000 && r <= 0x303e, r >= 0xff01 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// Break returns a line, including its line ending, wrapped between words for a screen of that many
// columns. Continuations are indented to the byte begin. If that leaves too little room, or columns
// is 0, the line is returned unchanged.
func Break(line string, begin, columns int) string {
	indent := Columns(line[:begin])
	if columns-indent < 20 || Columns(strings.TrimSuffix(line, "\n")) <= columns {
		return line
	}
	var b strings.Builder
	used := indent
	b.WriteString(line[:begin])
	for i, word := range strings.Fields(line[begin:]) {
		width := Columns(word)
		switch {
		case i == 0:
		case used+1+width > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += width
	}
	b.WriteByte('\n')
	return b.String()
}
