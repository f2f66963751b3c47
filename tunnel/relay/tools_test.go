package relay

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// toolDir is where programs are built that tests talk to.
var toolDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "adit-tools") })

// buildTool builds a program of tools.mod. It stays until the tests end.
func buildTool(pkg string) (string, error) {
	dir, err := toolDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, path.Base(pkg))
	build := exec.Command("go", "build", "-trimpath", "-modfile="+filepath.Join("..", "..", "tools.mod"), "-o", program, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

func TestMain(m *testing.M) {
	// Those that run beside others wait for most of their time. What -parallel says, holds.
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	code := m.Run()
	if dir, err := toolDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}
