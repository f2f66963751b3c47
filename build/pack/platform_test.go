package main

import (
	"slices"
	"strings"
	"testing"
)

func TestArchesOnASystemAreThoseItHas(t *testing.T) {
	p := &packer{arches: []string{"amd64", "arm64", "armv7"}}
	for system, want := range map[string][]string{
		"linux":   {"amd64", "arm64", "armv7"},
		"darwin":  {"amd64", "arm64"},
		"windows": {"amd64", "arm64"},
	} {
		if got := p.archesOn(system); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", system, got, want)
		}
	}
	if len(p.arches) != 3 || p.arches[2] != "armv7" {
		t.Errorf("asking changed the run's own: %v", p.arches)
	}
}

func TestParseArchesNamesWhatThereIs(t *testing.T) {
	if got, err := parseArches("armv7,amd64"); err != nil || !slices.Equal(got, []string{"armv7", "amd64"}) {
		t.Errorf("got %v, error %v", got, err)
	}
	for _, list := range []string{"arm", "", "amd64,arm7"} {
		if got, err := parseArches(list); err == nil || !strings.Contains(err.Error(), "amd64, arm64, armv7") {
			t.Errorf("%q: got %v, error %v; want the list of those there are", list, got, err)
		}
	}
}
