package docstest

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the project's folder, seen from this package.
const root = "../.."

// command is one command that a document shows.
type command struct {
	where string // file:line
	text  string // as the document has it, continuation lines joined
}

// commands returns what a document shows in its fences of kind console (lines
// after "$ ") and sh (all lines but comments).
func commands(text, name string) []command {
	var (
		list    []command
		kind    string
		inside  bool
		line    int
		pending *command
	)
	scan := bufio.NewScanner(strings.NewReader(text))
	for scan.Scan() {
		line++
		current := scan.Text()
		if fence, ok := strings.CutPrefix(strings.TrimSpace(current), "```"); ok {
			inside, kind, pending = !inside, fence, nil
			continue
		}
		if !inside || kind != "console" && kind != "sh" {
			continue
		}
		if pending != nil {
			pending.text = strings.TrimSuffix(pending.text, "\\") + strings.TrimSpace(current)
		} else {
			shown := current
			if kind == "console" {
				var prompt bool
				if shown, prompt = strings.CutPrefix(strings.TrimSpace(current), "$ "); !prompt {
					continue
				}
			}
			shown = withoutComment(shown)
			if shown == "" {
				continue
			}
			list = append(list, command{where: fmt.Sprintf("%s:%d", name, line), text: shown})
			pending = &list[len(list)-1]
		}
		if !strings.HasSuffix(pending.text, "\\") {
			pending = nil
		}
	}
	return list
}

// withoutComment drops what stands after two spaces and a "#", as the
// documents write their remarks, and lines that are remarks alone.
func withoutComment(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return ""
	}
	line, _, _ = strings.Cut(line, "  #")
	return strings.TrimSpace(line)
}

// documents returns all documents for people, by their path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(path string) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(text)
	}
	read("README.md")
	read("CONTRIBUTING.md")
	read("SECURITY.md")
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			read(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCommandsOfADocument(t *testing.T) {
	got := commands("text\n```console\n$ adit dev 8000   # a look\nprinted\n```\n```toml\n$ no\n```\n"+
		"```sh\n# a remark\ncurl a \\\n  -d b\nx=1\n```\n", "a.md")
	want := []command{{"a.md:3", "adit dev 8000"}, {"a.md:11", "curl a -d b"}, {"a.md:13", "x=1"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
