package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/buildtest"
)

// clock is the wall clock of one process, which a test can set. No system has a
// wall clock for one process alone, so the program under test is built with a
// package time whose Now adds what the first eight bytes of a file say. Its
// monotonic clock stays: it is what happens when NTP steps the clock or a person
// sets it.
type clock struct {
	t       *testing.T
	program string
	file    *os.File
	mu      sync.Mutex
	offset  time.Duration
}

// clockEnv names the file. Only the program of movableProgram knows it.
const clockEnv = "TEST_WALL_CLOCK"

func newClock(t *testing.T) *clock {
	t.Helper()
	program, err := movableProgram()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	c := &clock{t: t, program: program, file: file}
	c.set(0)
	return c
}

// set sets the clock to so much after the machine's.
func (c *clock) set(offset time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(offset)), 0); err != nil {
		c.t.Fatalf("set the clock: %v", err)
	}
	c.offset = offset
}

// moved is how far the clock is set forward.
func (c *clock) moved() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// now is the process's time.
func (c *clock) now() time.Time { return time.Now().Round(0).Add(c.moved()) }

func (c *clock) env() string { return clockEnv + "=" + c.file.Name() }

// shown requires that a process answers with its clock's time.
func (c *clock) shown(url string) {
	c.t.Helper()
	await(c.t, "the clock of "+url+" is set", func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		date, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			return err
		}
		if off := date.Sub(c.now()); off.Abs() > patience {
			return fmt.Errorf("Date is %v off the clock that was set", off)
		}
		return nil
	})
}

// What is changed in package time: one line of Now, and one file more.
const (
	timeRead  = "\tsec, nsec, mono := runtimeNow()\n"
	timeMoved = "\tsec, nsec, mono := movedNow()\n"

	timeMore = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var moved = mapMoved()

func mapMoved() *atomic.Int64 {
	if name, ok := syscall.Getenv("` + clockEnv + `"); ok {
		fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			panic("open the test's clock: " + err.Error())
		}
		page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			panic("map the test's clock: " + err.Error())
		}
		syscall.Close(fd)
		return (*atomic.Int64)(unsafe.Pointer(&page[0]))
	}
	return new(atomic.Int64)
}

func movedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	by := moved.Load()
	sec, nsec = sec+by/1e9, nsec+int32(by%1e9)
	switch {
	case nsec < 0:
		sec, nsec = sec-1, nsec+1e9
	case nsec >= 1e9:
		sec, nsec = sec+1, nsec-1e9
	}
	return sec, nsec, mono
}
`
)

// movableProgram builds adit with that package time, once. Go's own source is
// read where the test runs, so none of it is kept here.
var movableProgram = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its root: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", err
	}
	text := string(source)
	if n := strings.Count(text, timeRead); n != 1 {
		return "", fmt.Errorf("%s has %d lines %q, want one: see how Now reads the wall clock in this release of Go, and change timeRead and timeMoved",
			filepath.Join(folder, "time.go"), n, timeRead)
	}
	if before, _, _ := strings.Cut(text, timeRead); !strings.HasSuffix(before, "\nfunc Now() Time {\n") {
		return "", fmt.Errorf("%q in %s is not the first line of Now any more", timeRead, filepath.Join(folder, "time.go"))
	}
	dir := filepath.Join(programs, "movable")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	overlay := map[string]string{}
	for name, text := range map[string]string{"time.go": strings.Replace(text, timeRead, timeMoved, 1), "moved.go": timeMore} {
		overlay[filepath.Join(folder, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		return "", err
	}
	built := filepath.Join(dir, "adit")
	if err := buildtest.Program(built, "adit", "-overlay", filepath.Join(dir, "overlay.json")); err != nil {
		return "", fmt.Errorf("with a clock that can be set: %w", err)
	}
	return built, nil
})
