// Package discovery reads and writes runtime.json in the daemon's state folder, by which the tray,
// the command line and host products find the running daemon.
package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"adit/internal/atomicfile"
)

// Name is the file's name.
const Name = "runtime.json"

const maxSize = 64 << 10

// Info says where the daemon answers. A file left behind by a crash names a daemon that is gone:
// query health_path before relying on it.
type Info struct {
	ListenAddr  string    `json:"listen_addr"`
	ConnectAddr string    `json:"connect_addr"` // ListenAddr with a wildcard made loopback
	APIPrefix   string    `json:"api_prefix"`
	HealthPath  string    `json:"health_path"`
	PID         int       `json:"pid"`
	StartedAt   time.Time `json:"started_at"`
}

// New returns the Info of this process, which has listened on addr since started.
func New(addr net.Addr, started time.Time) Info {
	return Info{
		ListenAddr:  addr.String(),
		ConnectAddr: ConnectAddr(addr.String()),
		APIPrefix:   "/api/v1",
		HealthPath:  "/healthz",
		PID:         os.Getpid(),
		StartedAt:   started.UTC(),
	}
}

// ConnectAddr returns addr with an unspecified host replaced by IPv4 loopback, even for [::]. Such
// a listener accepts both families (package net makes the same of 0.0.0.0), and IPv4 loopback
// exists even if IPv6 is switched off and ::1 does not.
func ConnectAddr(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Write puts info into the state folder dir.
func Write(dir string, info Info) error {
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, Name), append(data, '\n'), 0o644)
}

// Remove removes info, unless another daemon has written its own since.
func Remove(dir string, info Info) error {
	now, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if now.PID != info.PID || !now.StartedAt.Equal(info.StartedAt) {
		return nil
	}
	return os.Remove(filepath.Join(dir, Name))
}

// Read returns what the daemon with the state folder dir has written. The error matches
// fs.ErrNotExist if there is nothing.
func Read(dir string) (Info, error) {
	path := filepath.Join(dir, Name)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // to open a pipe may last for ever
		return Info{}, fmt.Errorf("read %s: it is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	if stat.Size() > maxSize {
		return Info{}, fmt.Errorf("read %s: it has %d bytes", path, stat.Size())
	}
	var info Info
	if err := json.NewDecoder(f).Decode(&info); err != nil {
		return Info{}, fmt.Errorf("read %s: %w", path, err)
	}
	if _, _, err := net.SplitHostPort(info.ConnectAddr); err != nil {
		return Info{}, fmt.Errorf("read %s: connect_addr: %w", path, err)
	}
	return info, nil
}

// Find returns the Info in the first of dirs that has one. The error matches fs.ErrNotExist if none
// has.
func Find(dirs []string) (Info, error) {
	err := fs.ErrNotExist
	for _, dir := range dirs {
		info, readErr := Read(dir)
		if readErr == nil {
			return info, nil
		}
		if !errors.Is(readErr, fs.ErrNotExist) {
			err = readErr
		}
	}
	return Info{}, err
}
