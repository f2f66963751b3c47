package geo

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/geo/geotest"
)

func TestPlacesOfAddresses(t *testing.T) {
	f := &File{Path: filepath.Join(t.TempDir(), "geo.mmdb"), Log: slog.New(slog.DiscardHandler)}
	geotest.Write(t, f.Path, map[string][2]string{
		"127.0.0.0/8": {"DE", "BE"}, "203.0.113.0/24": {"CN", ""}, "2001:db8::/32": {"US", "CA"},
	})
	if got := f.Place(netip.MustParseAddr("127.0.0.1")); got != "" || f.Database() != nil {
		t.Errorf("before it is read: got %q", got)
	}
	if err := f.Read(); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"127.0.0.1": "DE-BE", "::ffff:127.0.0.1": "DE-BE", "203.0.113.9": "CN", "2001:db8::9": "US-CA", "198.51.100.1": "", "2001:db9::1": "",
	} {
		if got := f.Place(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	var none File
	if err := none.Read(); err != nil || none.Database() != nil || none.Place(netip.MustParseAddr("127.0.0.1")) != "" {
		t.Errorf("without a database: %v", err)
	}
	none.Watch(t.Context(), nil) // which ends at once
}

func TestFileThatIsReplacedIsReadAgain(t *testing.T) {
	f := &File{Path: filepath.Join(t.TempDir(), "geo.mmdb"), Every: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	if err := f.Read(); err == nil || !strings.HasPrefix(err.Error(), "geo.database: there is no file ") {
		t.Errorf("without a file: %v", err)
	}
	geotest.Write(t, f.Path, map[string][2]string{"127.0.0.0/8": {"DE", ""}})
	if err := f.Read(); err != nil {
		t.Fatal(err)
	}
	place := func() string { return f.Place(netip.MustParseAddr("127.0.0.1")) }
	changed := make(chan string, 10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Watch(ctx, func() { changed <- place() }) }()
	defer func() { stop(); <-ended }()
	wait := time.After(30 * time.Second)
	if err := os.WriteFile(f.Path, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second) // than the file before it, however coarse the file system's clock is
	if err := os.Chtimes(f.Path, later, later); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for f.Fault() == "" {
		select {
		case <-tick.C:
		case <-wait:
			t.Fatal("the wrong file is not said")
		}
	}
	if got := place(); got != "DE" || len(changed) > 0 {
		t.Errorf("with a wrong file: got %q", got)
	}
	geotest.Write(t, f.Path, map[string][2]string{"127.0.0.0/8": {"FR", ""}})
	later = later.Add(time.Second)
	if err := os.Chtimes(f.Path, later, later); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-changed:
		if got != "FR" || f.Fault() != "" {
			t.Errorf("got %q, and the fault is %q", got, f.Fault())
		}
	case <-wait:
		t.Fatal("the new database was not read")
	}
}

// TestFileOfTheSameTimeIsReadAgain covers tools that keep a file's modification time,
// such as cp -p and tar, when they replace a bad file or the one in use.
func TestFileOfTheSameTimeIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	f := &File{Path: filepath.Join(dir, "geo.mmdb"), Every: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	put := func(write func(path string)) {
		t.Helper()
		next := filepath.Join(dir, "next")
		write(next)
		if err := os.Chtimes(next, then, then); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, f.Path); err != nil {
			t.Fatal(err)
		}
	}
	country := func(code string) func(string) {
		return func(path string) { geotest.Write(t, path, map[string][2]string{"127.0.0.0/8": {code, ""}}) }
	}
	put(country("DE"))
	if err := f.Read(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Watch(ctx, func() {}) }()
	defer func() { stop(); <-ended }()
	until := func(what string, is func() bool) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		limit := time.After(20 * time.Second)
		for !is() {
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("%s: it is in %q, and the fault is %q", what, f.Place(netip.MustParseAddr("127.0.0.1")), f.Fault())
			}
		}
	}
	in := func(code string) func() bool {
		return func() bool { return f.Place(netip.MustParseAddr("127.0.0.1")) == code && f.Fault() == "" }
	}
	put(country("FR"))
	until("another database", in("FR"))
	wrong := func(path string) {
		if err := os.WriteFile(path, []byte("no database"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(wrong)
	until("a wrong file", func() bool { return f.Fault() != "" })
	put(country("US"))
	until("a right one behind a wrong one", in("US"))
	kept := filepath.Join(dir, "kept")
	if err := os.Link(f.Path, kept); err != nil {
		t.Skip("there are no hard links here:", err)
	}
	put(wrong)
	until("a wrong file", func() bool { return f.Fault() != "" })
	if err := os.Rename(kept, f.Path); err != nil {
		t.Fatal(err)
	}
	until("the one in force, which is back", in("US"))
}
