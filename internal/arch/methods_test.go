package arch

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"adit/internal/require"
)

// templates are the packages that call methods by names which the linker cannot
// know, so that it keeps every exported method of a program in which they run,
// and who may import them all the same: what never runs them in this program.
var templates = map[string][]string{
	"html/template": {},
	"text/template": {"html/template", "github.com/spf13/cobra"},
}

// TestNobodyRunsTemplates keeps the program an eighth smaller: see
// docs/decisions/0012-pages-without-templates.md. That the linker agrees is held
// where the packages are tested, by what is in them.
func TestNobodyRunsTemplates(t *testing.T) {
	goTool := require.Tool(t, "go")
	for _, system := range []string{"linux", "windows", "darwin"} {
		cmd := exec.Command(goTool, "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "adit")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH=amd64")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", system, err)
		}
		packages := 0
		for line := range strings.Lines(string(out)) {
			packages++
			words := strings.Fields(line)
			for _, imported := range words[1:] {
				may, bad := templates[imported]
				if bad && !slices.Contains(may, words[0]) {
					t.Errorf("%s: %s imports %s, for which the linker keeps every method in the program", system, words[0], imported)
				}
			}
		}
		if packages < 200 {
			t.Errorf("%s: go list names only %d packages of the program", system, packages)
		}
	}
}
