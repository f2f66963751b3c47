package console

import (
	"net/http"
	"slices"
	"strings"
)

// Expected reports whether a change may replace the version with a tag; "" means that
// nothing is there. If nil, the change replaces whatever is there.
type Expected func(tag string) bool

// ExpectedBy returns what a request expects to replace (RFC 9110, section 13.1): the tags
// of If-Match, or nothing with If-None-Match: *.
func ExpectedBy(r *http.Request) (Expected, error) {
	none, match := r.Header.Values("If-None-Match"), strings.Join(r.Header.Values("If-Match"), ",")
	switch {
	case len(none) > 0 && (len(none) > 1 || strings.TrimSpace(none[0]) != "*" || match != ""):
		return nil, invalid("If-None-Match", "If-None-Match must be *, without If-Match")
	case len(none) > 0:
		return func(tag string) bool { return tag == "" }, nil
	case strings.TrimSpace(match) == "*":
		return func(tag string) bool { return tag != "" }, nil
	case r.Header.Values("If-Match") == nil:
		return nil, nil
	}
	var tags []string
	for text := range strings.SplitSeq(match, ",") {
		// Weak tags are allowed, too: a proxy that compresses answers makes them weak,
		// and two answers with the same tag are equally recent.
		tag := strings.TrimPrefix(strings.TrimSpace(text), "W/")
		if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' {
			return nil, invalid("If-Match", "If-Match must be the ETag of an answer, with its quotes")
		}
		tags = append(tags, tag[1:len(tag)-1])
	}
	return func(tag string) bool { return slices.Contains(tags, tag) }, nil
}
