package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestNohupIsMeant(t *testing.T) {
	cmd, _ := daemon(t, `trap "" HUP;`)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var ignored uint64
	_, list, _ := strings.Cut(string(status), "SigIgn:")
	if _, err := fmt.Sscanf(list, "%x", &ignored); err != nil {
		t.Fatal(err)
	}
	if ignored&(1<<(syscall.SIGHUP-1)) == 0 {
		t.Error("a closed terminal would end it")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want a good end", err)
	}
}
