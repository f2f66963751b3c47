package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"adit/internal/netlab"
	"adit/internal/require"
)

func TestMain(m *testing.M) {
	if os.Getenv(farEnv) != "" {
		main()
		return
	}
	netlab.Main()
	bareHere()
	fleetHere()
	os.Exit(m.Run())
}

// TestAPathIsMeasured has all processes of a path, and some figures that no
// path of that kind can miss by much, whatever else the machine does.
func TestAPathIsMeasured(t *testing.T) {
	require.Root(t)
	require.Tool(t, "ip")
	require.Tool(t, "go")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		require.Missing(t, "no TUN devices: %v", err)
	}
	program := filepath.Join(t.TempDir(), "adit")
	if err := buildAdit(t.Context(), program); err != nil { // which takes minutes where nothing is compiled yet
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const rate = 2.5 // MB/s
	path, err := netlab.ParsePath("rtt=40ms,loss=0%,rate=20Mbit,tcp=reno")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := measurePath(ctx, options{
		program: program, each: time.Second, transports: []string{"direct", "dtls"},
		only: regexp.MustCompile("^(tcp down x1|tcp requests x1|http new connections|udp)$"),
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	if rep.LeftOut != "" {
		require.Missing(t, "%s", rep.LeftOut)
	}
	if rep.TCP != "reno" || rep.Path != path.String() {
		t.Errorf("got a report of %q with TCP by %q, want %v with reno", rep.Path, rep.TCP, path)
	}
	figures := map[string]figure{}
	for _, f := range rep.Figures {
		figures[f.Name] = f
	}
	for name, limits := range map[string][2]float64{
		"tcp down x1":               {0.01, 2 * rate}, // what waited at the start comes faster
		"tcp requests x1, p50":      {40, 20_000},
		"http new connections, p50": {40, 20_000},
		"udp 1,000/s, p50":          {40, 20_000},
		"udp 1,000/s, lost":         {0, 100},
	} {
		f := figures[name]
		for _, column := range []string{"direct", "dtls"} {
			if value, ok := f.Values[column]; !ok || value < limits[0] || value > limits[1] {
				t.Errorf("%s, %s: got %s, want from %v to %v", name, column, f.value(column), limits[0], limits[1])
			}
		}
		if f.measured("tls") {
			t.Errorf("%s: TLS was measured, and nobody asked", name)
		}
	}
	// What visitors connect to is near with a tunnel, and far without one.
	if fresh := figures["http new connections, p50"].Values["direct"]; fresh < 80 {
		t.Errorf("a new connection directly took %.0f ms, want two round trips of 40", fresh)
	}
}

func TestPathsHaveNames(t *testing.T) {
	var none, usualToo, one paths
	for _, set := range []struct {
		to   *paths
		text string
	}{{&usualToo, "loopback"}, {&usualToo, "usual"}, {&one, "rtt=1ms"}} {
		if err := set.to.Set(set.text); err != nil {
			t.Fatal(err)
		}
	}
	if !none.loopback() || len(none.bad) != 0 {
		t.Errorf("without -path: got %+v, want loopback alone", none)
	}
	if !usualToo.loopback() || len(usualToo.bad) != len(usual) {
		t.Errorf("loopback and usual: got %+v", usualToo)
	}
	if one.loopback() || len(one.bad) != 1 {
		t.Errorf("one path: got %+v, want it alone", one)
	}
	if err := one.Set("unusual"); err == nil {
		t.Error("a path that is none was taken")
	}
}
