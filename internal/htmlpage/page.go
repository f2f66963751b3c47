// Package htmlpage fills a handful of strings into an HTML page. Placeholders are written {{.Name}}
// and may stand in text or in a quoted attribute that holds text, where escaping is all that a
// value needs; a page with a placeholder anywhere else is rejected when it is parsed. The package
// replaces html/template, which forces the linker to keep every method in the program.
package htmlpage

import (
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
)

// maxPlaces bounds what the values that a stranger sends can be multiplied by.
const maxPlaces = 100

// Page is a page with placeholders. It is immutable.
type Page struct {
	texts  []string // one more than fields
	fields []string
}

// Parse parses a page whose placeholders may have the names in fields, each of which is a word of
// letters. An error begins with the name and the line at fault.
func Parse(name, text string, fields ...string) (*Page, error) {
	p := &Page{}
	line := 1
	fail := func(format string, args ...any) (*Page, error) {
		return nil, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
	}
	var lines []int // of each place
	for {
		before, rest, found := strings.Cut(text, "{{")
		p.texts = append(p.texts, before)
		line += strings.Count(before, "\n")
		if !found {
			break
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return fail("{{ has no }} behind it; %s", allowed(fields))
		}
		field, dotted := strings.CutPrefix(strings.Trim(inside, " \t"), ".")
		if !dotted || !slices.Contains(fields, field) {
			return fail("{{%s}} is not allowed; %s", excerpt(inside), allowed(fields))
		}
		if len(p.fields) == maxPlaces {
			return fail("it has more than %d places for values", maxPlaces)
		}
		p.fields, lines = append(p.fields, field), append(lines, line)
		text = after
	}
	if place, err := p.checkPlaces(); err != nil {
		return nil, fmt.Errorf("%s:%d: {{.%s}} is %w; a value may stand in text, or between quotes as the value of %s", name, lines[place], p.fields[place], err, textAttributes)
	}
	return p, nil
}

// Must is like Parse, but panics on an error; it is for pages that are part of the program.
func Must(p *Page, err error) *Page {
	if err != nil {
		panic(err)
	}
	return p
}

// Render returns the page filled with values, by field name. A missing field is empty.
func (p *Page) Render(values map[string]string) []byte {
	return []byte(p.render(func(place int) string { return html.EscapeString(values[p.fields[place]]) }))
}

// render puts what at returns, as it is, into each place.
func (p *Page) render(at func(place int) string) string {
	var b strings.Builder
	for i, text := range p.texts {
		b.WriteString(text)
		if i < len(p.fields) {
			b.WriteString(at(i))
		}
	}
	return b.String()
}

func allowed(fields []string) string {
	if len(fields) == 0 {
		return "nothing may stand in {{ }} here"
	}
	return "allowed are {{." + strings.Join(fields, "}}, {{.") + "}}"
}

// excerpt shortens what a person wrote to what a sentence can hold.
func excerpt(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return s
}

// What keeps a value from a place.
var (
	errRaw       = errors.New("inside an element whose text is not HTML, such as <script> or <style>")
	errTitle     = errors.New("beside a < in the text of <title> or <textarea>")
	errComment   = errors.New("inside a comment or a declaration")
	errTag       = errors.New("inside a tag, not in a quoted attribute")
	errUnquoted  = errors.New("in an attribute without quotes")
	errUnclosed  = errors.New("inside a tag that does not end")
	errRefresh   = errors.New("in a <meta http-equiv>")
	errAttribute = errors.New("in an attribute that may hold more than text")
	errControl   = errors.New("in a page with a control character")
)
