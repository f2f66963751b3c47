package cli

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// fitHelp breaks the help's lists of commands and flags where the screen ends.
func (e *Env) fitHelp(root *cobra.Command) {
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if !e.Terminal {
			plain(cmd, args)
			return
		}
		var text bytes.Buffer
		cmd.SetOut(&text)
		plain(cmd, args)
		cmd.SetOut(e.Out)
		_, _ = io.WriteString(e.Out, fitted(text.String(), e.screen().columns))
	})
}

// listed is the beginning of a line that lists a command or a flag, up to what is
// said of it.
var listed = regexp.MustCompile(`^ {2,}\S.*? {3,}`)

// fitted is text with such lines broken between words, each under its beginning.
// Where that leaves too little room, they stay as they are.
func fitted(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		begin := len(listed.FindString(line))
		if begin == 0 || columns-begin < 20 || utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) <= columns {
			b.WriteString(line)
			continue
		}
		used := begin
		b.WriteString(line[:begin])
		for i, word := range strings.Fields(line[begin:]) {
			width := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case used+1+width > columns:
				b.WriteString("\n" + strings.Repeat(" ", begin))
				used = begin
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += width
		}
		b.WriteByte('\n')
	}
	return b.String()
}
