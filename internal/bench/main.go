// Command bench measures the whole of adit as its users meet it: relay, agent,
// visitor and origin on loopback, beside the direct path in the same run. It
// prints a Markdown table, or JSON with -json. docs/benchmarks.md says how to
// read it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

// figure is one measured value.
type figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Direct float64 `json:"direct,omitempty"`
	DTLS   float64 `json:"dtls,omitempty"`
	TLS    float64 `json:"tls,omitempty"`
}

type report struct {
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	CPUs    int      `json:"cpus"`
	Load    string   `json:"load_before"`
	Figures []figure `json:"figures"`
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	each := flag.Duration("each", 3*time.Second, "how long each figure is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *each, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, each time.Duration, asJSON bool) error {
	dir, err := os.MkdirTemp("", "adit-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "adit")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "adit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build adit: %w\n%s", err, out)
	}
	rep := report{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Load: loadAverage()}
	table := newTable()
	origin, err := startOrigin()
	if err != nil {
		return err
	}
	defer origin.close()

	direct := face{tcp: origin.httpAddr, http: "http://" + origin.httpAddr, udp: origin.udpAddr}
	if err := measure(ctx, table, "direct", direct, nil, each); err != nil {
		return fmt.Errorf("direct: %w", err)
	}
	for _, transport := range []string{"dtls", "tls"} {
		if err := measureTransport(ctx, table, program, filepath.Join(dir, transport), transport, origin, each); err != nil {
			return fmt.Errorf("%s: %w", transport, err)
		}
	}
	rep.Figures = table.figures
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(rep)
	}
	rep.print(os.Stdout)
	return nil
}

func measureTransport(ctx context.Context, table *table, program, dir, transport string, origin *origin, each time.Duration) error {
	lab, err := startLab(ctx, program, dir, transport)
	if err != nil {
		return err
	}
	defer lab.close()
	table.add("idle memory, relay", "MB", transport, float64(lab.relay.memory())/1e6)
	table.add("idle memory, agent", "MB", transport, float64(lab.agent.memory())/1e6)
	table.add("agent start to connected", "ms", transport, float64(lab.startTime.Milliseconds()))
	through, err := lab.publish(origin)
	if err != nil {
		return err
	}
	if err := measure(ctx, table, transport, through, lab, each); err != nil {
		return err
	}
	if err := measureIdleVisitors(ctx, table, transport, through, lab); err != nil {
		return err
	}
	back, err := lab.recovery(ctx)
	if err != nil {
		return err
	}
	table.add("connected after the relay's return", "ms", transport, float64(back.Milliseconds()))
	return nil
}
