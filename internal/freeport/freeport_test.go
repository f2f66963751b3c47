package freeport

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPortsAreOfOneProcess holds that no port is given out twice in a row, not to
// another process either, and none that somebody has.
func TestPortsAreOfOneProcess(t *testing.T) {
	if os.Getenv("ADIT_FREEPORT_CHILD") != "" {
		fmt.Printf("from %d", Get(t)/each*each)
		return
	}
	a := Get(t)
	ln, err := net.Listen("tcp", at(a+1))
	if err != nil {
		t.Skipf("somebody has the next port: %v", err)
	}
	defer ln.Close()
	if b := Get(t); b <= a+1 {
		t.Errorf("%d is given out after %d, and %d is taken", b, a, a+1)
	}
	if b := Row(t, 10); b <= a+1 {
		t.Errorf("ten from %d, and %d is taken", b, a+1)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPortsAreOfOneProcess$")
	cmd.Env = append(os.Environ(), "ADIT_FREEPORT_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if ours := fmt.Sprintf("from %d", a/each*each); !strings.Contains(string(out), "from ") || strings.Contains(string(out), ours) {
		t.Errorf("this process has ports %s, the other %s", ours, out)
	}
}
