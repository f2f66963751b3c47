package htmlpage

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// textAttributes are the attributes that browsers only show or compare: nothing
// in them is an address, a style or a script. All that begin with aria- or data-
// are such, too.
const textAttributes = "alt, class, content, dir, id, label, lang, name, placeholder, title, value, aria-* or data-*"

func holdsText(attribute string) bool {
	return strings.HasPrefix(attribute, "aria-") || strings.HasPrefix(attribute, "data-") ||
		slices.Contains(strings.Split(textAttributes, ", "), attribute)
}

// The elements whose text is not HTML. In raw ones nothing is unescaped, in the
// others character references are.
var (
	rawElements = []string{"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "xmp"}
	rcElements  = []string{"textarea", "title"}
)

// mark is put into each place of a page to find out what the place is. It begins
// with a letter, which shows what a value could turn into a tag, and goes on with
// all that an escaped value may hold and that means something in a tag: where
// there are no quotes, the mark falls apart. A page has no control character of
// its own, so each one in it is a mark.
const (
	control = "\x01"
	mark    = "x" + control + " =/`x"
)

// checkPlaces returns the first place where escaping would not be enough, and
// why. It reads the page as browsers do (HTML Living Standard, section 13.2.5).
func (p *Page) checkPlaces() (int, error) {
	if len(p.fields) == 0 {
		return 0, nil
	}
	for i, text := range p.texts {
		if strings.Contains(text, control) {
			return min(i, len(p.fields)-1), errControl
		}
	}
	next := 0 // the place that comes next
	inside := ""
	z := html.NewTokenizer(strings.NewReader(p.render(func(int) string { return mark })))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		// Asking for a token's parts changes what it was read from.
		marks, angle := bytes.Count(z.Raw(), []byte(control)), bytes.ContainsRune(z.Raw(), '<')
		switch {
		case kind == html.TextToken:
			if marks > 0 && slices.Contains(rawElements, inside) {
				return next, errRaw
			}
			// With an empty value, what is around it might end the element.
			if marks > 0 && angle && slices.Contains(rcElements, inside) {
				return next, errTitle
			}
		case kind == html.StartTagToken || kind == html.SelfClosingTagToken:
			tag := z.Token()
			inside = tag.Data
			if marks > 0 {
				if err := checkTag(tag, marks); err != nil {
					return next, err
				}
			}
		case kind == html.EndTagToken:
			inside = ""
			if marks > 0 {
				return next, errTag
			}
		case marks > 0:
			return next, errComment
		}
		next += marks
	}
	if next < len(p.fields) {
		return next, errUnclosed
	}
	return 0, nil
}

// checkTag says why not all marks in a tag, are in an attribute that holds text.
func checkTag(tag html.Token, marks int) error {
	if strings.Contains(tag.Data, control) {
		return errTag
	}
	seen := 0
	for _, a := range tag.Attr {
		seen += strings.Count(a.Val, control)
		switch {
		case strings.Contains(a.Key, control):
			return errTag
		case !strings.Contains(a.Val, control):
		case strings.Count(a.Val, control) != strings.Count(a.Val, mark):
			return errUnquoted
		case !holdsText(a.Key):
			return errAttribute
		case a.Key == "content" && slices.ContainsFunc(tag.Attr, func(other html.Attribute) bool { return other.Key == "http-equiv" }):
			return errRefresh
		}
	}
	if seen < marks {
		return errTag
	}
	return nil
}
