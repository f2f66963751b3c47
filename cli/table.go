package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// table is a list for people: a row for each thing. All of it is shown where it
// is piped or the screen is wide enough; on a narrower one what steps say, one
// after the other until it fits.
type table struct {
	columns  []column
	narrower []step
}

// column is one of a table's. One without a heading everywhere has none.
type column struct {
	head  string
	cells []string
}

// step makes a table narrower. Over is by how much it is too wide.
type step func(t *table, over int)

// newTable returns a table with columns of these headings, and what it does
// without first where there is too little room.
func newTable(heads string, narrower ...step) *table {
	t := &table{narrower: narrower}
	for head := range strings.SplitSeq(heads, "|") {
		t.columns = append(t.columns, column{head: head})
	}
	return t
}

// row adds one thing. What comes from strangers does not steer the screen.
func (t *table) row(cells ...any) {
	for i, cell := range cells {
		t.columns[i].cells = append(t.columns[i].cells, printable(fmt.Sprint(cell)))
	}
}

func (t *table) column(head string) (index int, c *column) {
	index = slices.IndexFunc(t.columns, func(c column) bool { return c.head == head })
	if index < 0 {
		return index, nil
	}
	return index, &t.columns[index]
}

// omitEmpty leaves a column out in which nothing stands.
func (t *table) omitEmpty(head string) {
	i, c := t.column(head)
	if c != nil && !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" }) {
		t.columns = slices.Delete(t.columns, i, i+1)
	}
}

// drop leaves a column out.
func drop(head string) step {
	return func(t *table, _ int) {
		if i, _ := t.column(head); i >= 0 {
			t.columns = slices.Delete(t.columns, i, i+1)
		}
	}
}

// shorten writes each value of a column in fewer letters.
func shorten(head string, shorter func(string) string) step {
	return func(t *table, _ int) {
		_, c := t.column(head)
		for i := range c.cells {
			c.cells[i] = shorter(c.cells[i])
		}
	}
}

// squeeze cuts values of a column as far as is needed, and keeps at least so many
// columns of the screen for it.
func squeeze(head string, least int) step {
	return func(t *table, over int) {
		_, c := t.column(head)
		most := max(c.width()-over, least)
		for i := range c.cells {
			c.cells[i] = cut(c.cells[i], most)
		}
	}
}

func (c *column) width() int {
	width := columnsIn(c.head)
	for _, cell := range c.cells {
		width = max(width, columnsIn(cell))
	}
	return width
}

// gap is between two columns.
const gap = 2

func (t *table) width() int {
	width := -gap
	for i := range t.columns {
		width += gap + t.columns[i].width()
	}
	return width
}

// write lays the table out for a screen of so many columns; 0 is as many as it
// takes.
func (t *table) write(w io.Writer, columns int) {
	if columns > 0 {
		for _, narrow := range t.narrower {
			over := t.width() - columns
			if over <= 0 {
				break
			}
			narrow(t, over)
		}
	}
	widths := make([]int, len(t.columns))
	var heads strings.Builder
	for i := range t.columns {
		widths[i] = t.columns[i].width()
		heads.WriteString(t.columns[i].head)
	}
	line := func(cell func(c *column) string) {
		var b strings.Builder
		for i := range t.columns {
			b.WriteString(pad(cell(&t.columns[i]), widths[i]+gap))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	if heads.Len() > 0 {
		line(func(c *column) string { return c.head })
	}
	for i := range t.columns[0].cells {
		line(func(c *column) string { return c.cells[i] })
	}
}

// printTable writes a list: as one JSON document with --json, else as a table, or
// what is said instead of an empty one.
func (e *Env) printTable(v any, t *table, none string) error {
	if e.json {
		return e.print(v, nil)
	}
	if len(t.columns[0].cells) == 0 && none != "" {
		return e.write(none + "\n")
	}
	var b strings.Builder
	t.write(&b, e.columns())
	_, err := io.WriteString(e.Out, b.String())
	return err
}

// columns is how wide the screen is that a person looks at; 0 where nobody does
// or it is not known.
func (e *Env) columns() int {
	if !e.Terminal {
		return 0
	}
	return e.screen().columns
}

// shortTime is a time of localTime without its year, which a list can do without.
func shortTime(text string) string {
	_, rest, ok := strings.Cut(text, "-")
	if !ok {
		return text
	}
	return rest
}

// shortLocal is the address of a local service as commands take it: of one on
// this machine the port alone.
func shortLocal(text string) string { return strings.TrimPrefix(text, "127.0.0.1:") }
