// Package geotest makes country databases for tests.
package geotest

import (
	"net"
	"os"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// Write writes a database that maps CIDRs to countries and regions, as MaxMind's own
// tools do.
func Write(tb testing.TB, path string, places map[string][2]string) {
	tb.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-City", RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		tb.Fatal(err)
	}
	for block, place := range places {
		_, network, err := net.ParseCIDR(block)
		if err != nil {
			tb.Fatal(err)
		}
		record := mmdbtype.Map{
			"country":   mmdbtype.Map{"iso_code": mmdbtype.String(place[0]), "names": mmdbtype.Map{"en": mmdbtype.String("x")}},
			"continent": mmdbtype.Map{"code": mmdbtype.String("EU")},
		}
		if place[1] != "" {
			record["subdivisions"] = mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String(place[1])}}
		}
		if err := tree.Insert(network, record); err != nil {
			tb.Fatal(err)
		}
	}
	f, err := os.Create(path + ".new")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := tree.WriteTo(f); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
}
