package desktoptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The packages that have tests for Windows alone.
var windowsTests = []string{"service", "tray"}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(t `)

// TestCodeForWindows runs the tests of *_windows_test.go. Of the other tests, those
// with temporary folders cannot pass: Wine does not know how Go removes them.
func TestCodeForWindows(t *testing.T) {
	t.Parallel()
	w := newWindows(t)
	for _, folder := range windowsTests {
		source := filepath.Join("..", "..", folder)
		files, err := filepath.Glob(filepath.Join(source, "*_windows_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testName.FindAllSubmatch(text, -1) {
				names = append(names, string(m[1]))
			}
		}
		if len(names) == 0 {
			t.Errorf("%s has no tests for Windows", folder)
			continue
		}
		exe := w.file(folder + "-test.exe")
		build := exec.Command("go", "test", "-c", "-vet=off", "-o", exe, ".")
		build.Dir = source
		build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the tests of %s: %v\n%s", folder, err, said)
		}
		begin := time.Now()
		out, err := w.run(patience, exe, "-test.v", "-test.run", "^("+strings.Join(names, "|")+")$")
		if ran := strings.Count(out, "--- PASS: Test"); err != nil || ran < len(names) {
			t.Errorf("%s: %v, and %d of %d tests passed:\n%s", folder, err, ran, len(names), out)
		}
		t.Logf("%.1f s: %d tests of %s", time.Since(begin).Seconds(), len(names), folder)
	}
}
