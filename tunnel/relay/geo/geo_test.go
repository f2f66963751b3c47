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
