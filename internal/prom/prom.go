// Package prom writes metrics in Prometheus' text format, version 0.0.4. What to count, and keeping
// labels few, is left to its callers.
package prom

import (
	"fmt"
	"strconv"
	"strings"
)

// ContentType is the media type of a Text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text is a page of metrics. Its zero value is empty and ready for use.
type Text struct {
	b    strings.Builder
	name string
}

// Family starts the samples of one metric; kind is "gauge" or "counter".
func (t *Text) Family(name, kind, help string) {
	t.name = name
	fmt.Fprintf(&t.b, "# HELP %s %s\n# TYPE %s %s\n", name, helpEscape.Replace(help), name, kind)
}

// Sample writes one value of the family; labels alternates names and values.
func (t *Text) Sample(value float64, labels ...string) {
	t.b.WriteString(t.name)
	for i := 0; i < len(labels); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		t.b.WriteString(open + labels[i] + `="` + escape.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		t.b.WriteByte('}')
	}
	t.b.WriteByte(' ')
	t.b.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	t.b.WriteByte('\n')
}

// String returns the page.
func (t *Text) String() string { return t.b.String() }

// Truth returns 1 for true and 0 for false.
func Truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	escape     = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	helpEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)
