package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinksLeadSomewhere holds that each link of a document to a file of this
// project, and to a heading in it, has something at its end.
func TestLinksLeadSomewhere(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, found := range linkTarget.FindAllStringSubmatch(withoutFences(text), -1) {
			target := found[1]
			if strings.Contains(target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			path := name
			if file != "" {
				path = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: the link %s leads to no file", name, target)
			} else if anchor != "" && !anchors(texts[path])[anchor] {
				t.Errorf("%s: the link %s leads to no heading of %s", name, target, path)
			}
		}
	}
}

// anchors returns the names under which the headings of a document can be
// linked to: in lower case, hyphens for spaces, without other punctuation.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.SplitSeq(withoutFences(text), "\n") {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linkText.ReplaceAllString(title, "$1"))] = true
	}
	return found
}

// withoutFences leaves out what stands between lines of ```.
func withoutFences(text string) string {
	var kept strings.Builder
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
		} else if !inside {
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}

func TestAnchors(t *testing.T) {
	got := anchors("# HTTP/3 and one `port`\n```\n# not this\n```\n## [A](b.md), a_b\n#none\n")
	for _, want := range []string{"http3-and-one-port", "a-a_b"} {
		if !got[want] {
			t.Errorf("got the anchors %v, want %q among them", got, want)
		}
	}
	if len(got) != 2 {
		t.Errorf("got %d anchors in %v, want 2", len(got), got)
	}
}
