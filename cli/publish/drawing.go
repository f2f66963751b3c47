package publish

import (
	"io"
	"strings"

	"adit/cli/terminal"
)

// drawing is a screen that is redrawn in place.
type drawing struct {
	text string        // what it shows
	size terminal.Size // and how large it was
}

// show draws text if the text or the screen's size has changed. It overwrites what the screen shows
// instead of clearing it first, which would flicker.
func (d *drawing) show(out io.Writer, size terminal.Size, text string) {
	if text == d.text && size == d.size {
		return
	}
	clearing := "\x1b[H"
	if d.text == "" || size != d.size {
		clearing = "\x1b[H\x1b[2J"
	}
	d.text, d.size = text, size
	// Clear to the end of each line, and everything below the last.
	_, _ = io.WriteString(out, clearing+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
}
