package publish

import (
	"io"
	"strings"

	"adit/cli/terminal"
)

// drawing is a screen that is drawn over.
type drawing struct {
	text string        // what it shows
	size terminal.Size // and how large it was
}

// show draws text, if that is another or the screen has another size. It writes over
// what the screen shows instead of clearing it first, which flickers.
func (d *drawing) show(out io.Writer, size terminal.Size, text string) {
	if text == d.text && size == d.size {
		return
	}
	clearing := "\x1b[H"
	if d.text == "" || size != d.size {
		clearing = "\x1b[H\x1b[2J"
	}
	d.text, d.size = text, size
	// To the end of each line, and below the last.
	_, _ = io.WriteString(out, clearing+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
}
