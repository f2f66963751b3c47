package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConnectAddrTurnsWildcardsToLoopback(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:37271": "127.0.0.1:37271",
		"0.0.0.0:80":      "127.0.0.1:80",
		"[::]:80":         "127.0.0.1:80",
		":80":             "127.0.0.1:80",
		"192.0.2.1:80":    "192.0.2.1:80",
		"[2001:db8::1]:9": "[2001:db8::1]:9",
	} {
		if got := ConnectAddr(addr); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}

// Go calls a listener on all addresses [::], also one asked for as 0.0.0.0, and
// where IPv6 is switched off there is no ::1 to reach it at.
func TestConnectAddrOfAListenerOnAllAddressesIsIPv4(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		got, want := ConnectAddr(ln.Addr().String()), fmt.Sprintf("127.0.0.1:%d", ln.Addr().(*net.TCPAddr).Port)
		if got != want {
			t.Errorf("listening on %s, which is %s: got %s, want %s", addr, ln.Addr(), got, want)
		}
		c, err := net.Dial("tcp", got)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

func TestWrittenIsFoundUntilRemoved(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find([]string{dir}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: got error %v, want fs.ErrNotExist", err)
	}
	info := New(&net.TCPAddr{IP: net.IPv4zero, Port: 37271}, time.Now())
	if err := Write(dir, info); err != nil {
		t.Fatal(err)
	}
	got, err := Find([]string{t.TempDir(), dir})
	if err != nil {
		t.Fatal(err)
	}
	if got.ConnectAddr != "127.0.0.1:37271" || got.PID != os.Getpid() || !got.StartedAt.Equal(info.StartedAt) {
		t.Errorf("got %+v, want %+v", got, info)
	}
	other, earlier := info, info
	other.PID++
	earlier.StartedAt = info.StartedAt.Add(-time.Hour) // a container's daemon has the same PID each time
	for _, another := range []Info{other, earlier} {
		if err := Remove(dir, another); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err != nil {
			t.Errorf("another daemon's end removed the file: %v", err)
		}
	}
	if err := Remove(dir, info); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after: got error %v, want fs.ErrNotExist", err)
	}
	if err := Remove(dir, info); err != nil {
		t.Errorf("removed again: got error %v, want none", err)
	}
}

func TestBrokenFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"", "{", `{"connect_addr":""}`, "[]", `{"connect_addr":"127.0.0.1:1"}` + strings.Repeat(" ", maxSize)} {
		if err := os.WriteFile(filepath.Join(dir, Name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := Find([]string{dir, t.TempDir()}); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %+v, error %v, want an error that tells of the file", content, info, err)
		}
	}
}
