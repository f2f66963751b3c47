// Package table lays out lists for people. A list is written whole if there is room or if another
// program reads it; on a narrower screen, the columns that a reader misses least are left out.
package table

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"adit/cli/terminal"
	"adit/internal/visible"
)

// Table is a list for people, with a row for each thing. It is shown in full if it is piped or the
// screen is wide enough; on a narrower screen, the steps are applied one after the other until it
// fits.
type Table struct {
	columns  []column
	narrower []Step
}

// column is one column of a table. If no column has a heading, there is no row of headings.
type column struct {
	head  string
	cells []string
}

// Step makes a table narrower. over is how many columns too wide it is.
type Step func(t *Table, over int)

// New returns a table with columns of these headings, and the steps to apply, in order, if there is
// too little room.
func New(heads string, narrower ...Step) *Table {
	t := &Table{narrower: narrower}
	for head := range strings.SplitSeq(heads, "|") {
		t.columns = append(t.columns, column{head: head})
	}
	return t
}

// Add adds one row. Text from strangers cannot control the screen.
func (t *Table) Add(cells ...any) {
	for i, cell := range cells {
		t.columns[i].cells = append(t.columns[i].cells, visible.Text(fmt.Sprint(cell)))
	}
}

func (t *Table) column(head string) (index int, c *column) {
	index = slices.IndexFunc(t.columns, func(c column) bool { return c.head == head })
	if index < 0 {
		return index, nil
	}
	return index, &t.columns[index]
}

// OmitEmpty removes a column if all its cells are empty.
func (t *Table) OmitEmpty(head string) {
	i, c := t.column(head)
	if c != nil && !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" }) {
		t.columns = slices.Delete(t.columns, i, i+1)
	}
}

// Drop removes a column.
func Drop(head string) Step {
	return func(t *Table, _ int) {
		if i, _ := t.column(head); i >= 0 {
			t.columns = slices.Delete(t.columns, i, i+1)
		}
	}
}

// Shorten shortens each value of a column.
func Shorten(head string, shorter func(string) string) Step {
	return func(t *Table, _ int) {
		_, c := t.column(head)
		for i := range c.cells {
			c.cells[i] = shorter(c.cells[i])
		}
	}
}

// Squeeze truncates the values of a column as far as needed, but leaves it at least that many
// columns of the screen.
func Squeeze(head string, least int) Step {
	return func(t *Table, over int) {
		_, c := t.column(head)
		most := max(c.width()-over, least)
		for i := range c.cells {
			c.cells[i] = terminal.Cut(c.cells[i], most)
		}
	}
}

// Identify removes a column of ids. Where a name is ambiguous or empty, the id is shown in its
// place.
func Identify(ids, names string) Step {
	return func(t *Table, over int) {
		_, by := t.column(ids)
		_, named := t.column(names)
		count := map[string]int{"": 2}
		for _, name := range named.cells {
			count[name]++
		}
		for i, name := range named.cells {
			if count[name] > 1 {
				named.cells[i] = by.cells[i]
			}
		}
		Drop(ids)(t, over)
	}
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.columns[0].cells) == 0 }

func (c *column) width() int {
	width := terminal.Columns(c.head)
	for _, cell := range c.cells {
		width = max(width, terminal.Columns(cell))
	}
	return width
}

// usual is the width of a column without the values that are wider than others are
// spread for: those stand out in their own line.
func (c *column) usual() int {
	width := terminal.Columns(c.head)
	for _, cell := range c.cells {
		if n := terminal.Columns(cell); n <= maxSpread {
			width = max(width, n)
		}
	}
	return width
}

const (
	// gap is between two columns.
	gap = 2
	// maxSpread bounds how wide one value makes all lines where there is no screen.
	maxSpread = 120
)

func (t *Table) width() int {
	width := -gap
	for i := range t.columns {
		width += gap + t.columns[i].width()
	}
	return width
}

// Write lays the table out for a screen with that many columns; 0 means no limit.
func (t *Table) Write(w io.Writer, columns int) {
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
		if widths[i] = t.columns[i].width(); columns == 0 {
			widths[i] = t.columns[i].usual()
		}
		heads.WriteString(t.columns[i].head)
	}
	line := func(cell func(c *column) string) {
		var b strings.Builder
		for i := range t.columns {
			text := cell(&t.columns[i])
			b.WriteString(terminal.Pad(text, max(widths[i], terminal.Columns(text))+gap))
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
