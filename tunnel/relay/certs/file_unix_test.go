//go:build unix

package certs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAHandshakeDoesNotWaitForADisk uses a certificate file that blocks its readers: a
// pipe without a writer.
func TestAHandshakeDoesNotWaitForADisk(t *testing.T) {
	_, dir, serial, _ := fileCertificate(t)
	before, pipe := serial(), filepath.Join(dir, "cert.pem")
	if err := unix.Mkfifo(pipe+".new", 0o600); err != nil {
		t.Skipf("no pipe can be made here: %v", err)
	}
	if err := os.Rename(pipe+".new", pipe); err != nil {
		t.Fatal(err)
	}
	var writer *os.File
	waitFor(t, "the file is being read", func() bool {
		fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK, 0) // refused without a reader
		if err != nil && !errors.Is(err, unix.ENXIO) {
			t.Fatal(err)
		}
		if err == nil {
			writer = os.NewFile(uintptr(fd), pipe)
		}
		return err == nil
	})
	got := make(chan string, 1)
	go func() { got <- serial() }()
	select {
	case now := <-got:
		if now != before {
			t.Errorf("serial %s, want the one before, %s", now, before)
		}
	case <-time.After(20 * time.Second):
		t.Error("the handshake waits for the file")
	}
	if err := os.Remove(pipe); err != nil { // it must not be read anew, when it has ended
		t.Error(err)
	}
	writer.Close()
}
