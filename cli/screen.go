package cli

import (
	"strings"
	"unicode"
)

// Columns of the short forms' screen where its size is not known, and the least
// that a line of a request is cut to.
const (
	usualColumns = 96
	leastColumns = 32
)

// screen is how much a person sees at once. Zero is not known.
type screen struct{ columns, rows int }

// screen asks how much of e.Out is seen now.
func (e *Env) screen() (s screen) {
	if e.Screen != nil {
		s.columns, s.rows = e.Screen()
	}
	return s
}

// fit lays out what a screen shows: lines that are too long go on below, and what
// is above the bottom line counts. Of the list, only the newest have to be seen.
func (s screen) fit(head, list []string) string {
	var above []string
	for _, line := range head {
		above = append(above, s.wrap(line)...)
	}
	if most := s.rows - 1; s.rows > 1 { // the cursor's line would make it scroll
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
func (s screen) wrap(line string) []string {
	if s.columns == 0 {
		return []string{line}
	}
	var lines []string
	begin, used := 0, 0
	for i, r := range line {
		w := columnsOf(r)
		if used+w > s.columns && i > begin {
			lines = append(lines, line[begin:i])
			begin, used = i, 0
		}
		used += w
	}
	return append(lines, line[begin:])
}

// cut is line with at most so many columns, and an ellipsis for what it loses.
func cut(line string, columns int) string {
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

// pad is line with at least so many columns.
func pad(line string, columns int) string {
	return line + strings.Repeat(" ", max(columns-columnsIn(line), 0))
}

// columnsIn is how wide a terminal draws a line.
func columnsIn(line string) (columns int) {
	for _, r := range line {
		columns += columnsOf(r)
	}
	return columns
}

// columnsOf is how wide a terminal draws r (Unicode Standard Annex 11, roughly).
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
