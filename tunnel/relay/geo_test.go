package relay

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/geo/geotest"
	"adit/tunnel/wire"
)

// TestCountriesOfARealDatabase looks up addresses of both IP versions, through the edge,
// in a database in MaxMind's format, and again after everything that may happen to its
// file.
func TestCountriesOfARealDatabase(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Geo.Database = filepath.Join(t.TempDir(), "geo.mmdb")
	geotest.Write(t, cfg.Geo.Database, map[string][2]string{
		"127.0.0.0/8": {"DE", "BE"}, "203.0.113.0/24": {"CN", ""}, "2001:db8::/32": {"US", "CA"},
	})
	s := &site{testRelay: startRelayWith(t, Options{Config: cfg, geoCheck: 10 * time.Millisecond})}
	a := connect(t, s.client(t, "shop"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
	v := s.testRelay.visitor(t)
	for _, c := range []struct {
		doc    string
		status int
		rule   string
	}{
		{`{"deny_countries":["DE"]}`, 403, "deny_countries"},
		{`{"deny_countries":["DE-BY"]}`, 200, ""},
		{`{"deny_countries":["DE-BE"]}`, 403, "deny_countries"},
		{`{"allow_countries":["de"]}`, 200, ""},
		{`{"allow_countries":["US"]}`, 403, "allow_countries"},
		{`{"allow_countries":["US"],"shadow":true}`, 200, "shadow:allow_countries"},
	} {
		s.setPolicy(t, "shop", c.doc)
		if status, _ := get(t, v, g.PublicURL); status != c.status {
			t.Errorf("%s: status %d, want %d", c.doc, status, c.status)
		}
		recorded(t, s.Relay, c.doc, func(e wire.Access) bool { return e.Refused == c.rule && e.Country == "DE-BE" })
	}
	s.setPolicy(t, "shop", `{"allow_countries":["FR"]}`)
	settings := func() console.GeoSettings {
		set, err := s.operator().Settings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return set.Geo
	}
	if g := settings(); g.BuildAt == nil || g.LoadedAt == nil || g.Error != "" {
		t.Errorf("settings %+v", g)
	}
	// A wrong file is said, and the database before it stays in force.
	if err := os.WriteFile(cfg.Geo.Database, []byte("no database"), 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the wrong file is said", func() bool { return settings().Error != "" })
	if status, _ := get(t, v, g.PublicURL); status != 403 {
		t.Errorf("with a wrong file: status %d", status)
	}
	// So it does while there is none.
	if err := os.Remove(cfg.Geo.Database); err != nil {
		t.Fatal(err)
	}
	if got := s.geo.Place(netip.MustParseAddr("203.0.113.9")); got != "CN" {
		t.Errorf("without a file: %q", got)
	}
	geotest.Write(t, cfg.Geo.Database, map[string][2]string{"127.0.0.0/8": {"FR", ""}})
	eventually(t, "the new database is in force", func() bool { status, _ := get(t, v, g.PublicURL); return status == 200 })
	eventually(t, "the old fault is said no longer", func() bool { return settings().Error == "" })
	// An address that the database does not know: closed, or open by choice.
	for doc, want := range map[string]bool{`{"allow_countries":["FR"]}`: false, `{"allow_countries":["FR"],"unknown_country":"allow"}`: true} {
		s.setPolicy(t, "shop", doc)
		e, err := s.operator().Explain(console.Question{Target: "shop", Address: "2001:db8::9"})
		if err != nil || e.Allowed != want || !want && e.Rule != "unknown_country" {
			t.Errorf("%s: explained as %+v, %v", doc, e, err)
		}
	}
	// Who is there goes when a new database says that it is elsewhere.
	target, address := echoSite(t, s.testRelay)
	s.setPolicy(t, target, `{"allow_countries":["FR"]}`)
	c := echoed(t, address)
	geotest.Write(t, cfg.Geo.Database, map[string][2]string{"127.0.0.0/8": {"DE", ""}})
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection lives on: %v", err)
	}
}
