package main

import (
	"path/filepath"
	"testing"

	"adit/internal/require"
)

// TestManyAgentsAreMeasured has some agents come, and come back after their relay
// was killed.
func TestManyAgentsAreMeasured(t *testing.T) {
	require.Tool(t, "go")
	program := filepath.Join(t.TempDir(), "adit")
	if err := buildAdit(t.Context(), program); err != nil { // which takes minutes where nothing is compiled yet
		t.Fatal(err)
	}
	ctx, origin := withOrigin(t)
	table := newTable()
	if err := measureFleet(ctx, table, "dtls", filepath.Join(t.TempDir(), "dtls"), origin, options{program: program, agents: 12}); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range table.figures {
		got[f.Name] = f.Values["dtls"]
	}
	for _, name := range []string{
		"all connected for the first time", "CPU of relay for that", "memory of each, agents",
		"50 % back after the relay was killed", "100 % back after the relay was killed", "CPU of relay for the return of all",
		"50 % back after a return at once", "100 % back after a return at once",
	} {
		if got[name] <= 0 {
			t.Errorf("%s: got %v", name, got[name])
		}
	}
	if half, all := got["50 % back after the relay was killed"], got["100 % back after the relay was killed"]; half > all {
		t.Errorf("half were back after %v s and all after %v", half, all)
	}
}
