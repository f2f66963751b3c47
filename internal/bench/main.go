// Command bench measures the whole of adit as its users experience it: relay, agent, visitor and
// origin on loopback or over bad paths, next to the direct path in the same run. It prints Markdown
// tables, or JSON with -json. docs/benchmarks.md says how to read them.
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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"adit/internal/netlab"
)

// figure is one measured value in each column where it was measured, by the
// column's name.
type figure struct {
	Name   string             `json:"name"`
	Unit   string             `json:"unit"`
	Values map[string]float64 `json:"values"`
}

type report struct {
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	CPUs    int      `json:"cpus"`
	Load    string   `json:"load_before"`
	Figures []figure `json:"figures,omitempty"` // of loopback
	// Paths are those between network namespaces.
	Paths []pathReport `json:"paths,omitempty"`
}

func main() {
	netlab.Main()
	idleHere()
	bareHere()
	fleetHere()
	o := options{plan: loopbackPlan}
	flag.BoolVar(&o.asJSON, "json", false, "print JSON")
	flag.DurationVar(&o.each, "each", 3*time.Second, "how long each figure is measured")
	flag.StringVar(&o.program, "program", "", "an adit to measure instead of one built from this tree")
	flag.StringVar(&o.against, "against", "", "another adit, or bare for the floor: the same through both, in turns")
	flag.Var(&o.paths, "path", "a path such as rtt=50ms,loss=1%,rate=100Mbit between relay and agent, or loopback, or usual for four\nof them; may be given again (default loopback)")
	flag.BoolVar(&o.urgent, "urgent", false, "over a path, have relay, agent, visitors and origin go before the machine's other work")
	flag.BoolVar(&o.awake, "awake", false, "keep the processors from halting meanwhile, by loops that run where nothing else would")
	flag.IntVar(&o.agents, "agents", 0, "measure a relay with so many agents instead, over loopback")
	transports := flag.String("transports", "direct,dtls,tls", "columns to measure: direct, bare-udp, bare-tcp, bare-tls, ssh, dtls, tls")
	only := flag.String("only", "", "a regular expression: the figures to measure")
	flag.Parse()
	o.transports = strings.Split(*transports, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.only, err = regexp.Compile(*only); err == nil {
		if far := os.Getenv(farEnv); far != "" {
			err = measureHere(ctx, o, far)
		} else {
			err = run(ctx, o)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// restAfter is how long after their start relay and agent have given back what
// the start took.
const restAfter = 5 * time.Second

// options are the command's flags.
type options struct {
	asJSON     bool
	each       time.Duration
	program    string
	against    string
	transports []string
	only       *regexp.Regexp
	paths      paths
	urgent     bool // what is measured over a path goes before other work
	awake      bool // processors do not halt
	agents     int  // of a fleet, which is measured instead of all else; 0: none
	plan       plan
}

// wants reports whether a figure, or a group that it belongs to, is to be measured.
func (o options) wants(names ...string) bool { return slices.ContainsFunc(names, o.only.MatchString) }

// check refuses what does not go together.
func (o options) check() error {
	for _, column := range o.transports {
		if !slices.ContainsFunc(columns, func(c columnOf) bool { return c.name == column }) {
			return fmt.Errorf("%s is no column", column)
		}
		if others[column] == nil {
			continue
		}
		if o.against != "" || len(o.paths.bad) > 0 {
			return fmt.Errorf("%s is for loopback, and not for -against, which takes %s", column, againstBare)
		}
	}
	return nil
}

func run(ctx context.Context, o options) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "adit-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.program == "" {
		o.program = filepath.Join(dir, "adit")
		if err := buildAdit(ctx, o.program); err != nil {
			return err
		}
	}
	if o.awake {
		sleep, err := keepAwake(ctx)
		if err != nil {
			return err
		}
		defer sleep()
	}
	rep := report{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Load: loadAverage()}
	if o.paths.loopback() {
		if rep.Figures, err = measureLoopback(ctx, dir, o); err != nil {
			return err
		}
	}
	for _, path := range o.paths.bad {
		measured, err := measurePath(ctx, o, path)
		if err != nil {
			return fmt.Errorf("%v: %w", path, err)
		}
		rep.Paths = append(rep.Paths, measured)
	}
	if o.asJSON {
		return json.NewEncoder(os.Stdout).Encode(rep)
	}
	rep.print(os.Stdout)
	return nil
}

// buildAdit builds the tree's program.
func buildAdit(ctx context.Context, to string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, "adit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build adit: %w\n%s", err, out)
	}
	return nil
}

func measureLoopback(ctx context.Context, dir string, o options) ([]figure, error) {
	table := newTable()
	origin, err := startOrigin("127.0.0.1")
	if err != nil {
		return nil, err
	}
	defer origin.close()
	for _, transport := range o.transports {
		switch {
		case transport == "direct" && (o.against != "" || o.agents > 0):
			continue
		case o.agents > 0:
			err = measureFleet(ctx, table, transport, filepath.Join(dir, transport), origin, o)
		case transport == "direct":
			err = measure(ctx, table, transport, origin.direct(), nil, o)
		case others[transport] != nil:
			err = measureOther(ctx, table, transport, filepath.Join(dir, transport), origin, o)
		case o.against != "":
			err = measureAgainst(ctx, table, transport, filepath.Join(dir, transport), origin, o)
		default:
			err = measureTransport(ctx, table, filepath.Join(dir, transport), transport, origin, o)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", transport, err)
		}
	}
	return table.figures, nil
}

func measureTransport(ctx context.Context, table *table, dir, transport string, origin *origin, o options) error {
	if slices.ContainsFunc(smallRequests, func(k kind) bool { return o.wants("access events, " + k.name) }) {
		if err := measureAccess(ctx, table, transport, dir, origin, o); err != nil {
			return err
		}
	}
	if o.wants("memory of an idle agent", "memory of 1,000 endpoints") {
		if err := measureHolding(ctx, table, transport, dir, origin, o); err != nil {
			return err
		}
	}
	lab, err := startLab(ctx, setup{program: o.program, dir: filepath.Join(dir, "lab"), transport: transport})
	if err != nil {
		return err
	}
	defer lab.close()
	table.add("idle memory, relay", "MB", transport, float64(lab.relay.memory())/1e6)
	table.add("idle memory, agent", "MB", transport, float64(lab.agent.memory())/1e6)
	table.add("agent start to connected", "ms", transport, float64(lab.startTime.Milliseconds()))
	if o.wants("at rest") {
		if err := measureRest(ctx, table, transport, lab, o.each); err != nil {
			return err
		}
	}
	if o.wants("memory at rest") {
		time.Sleep(restAfter)
		table.add("memory at rest, relay", "MB", transport, float64(lab.relay.memory())/1e6)
		table.add("memory at rest, agent", "MB", transport, float64(lab.agent.memory())/1e6)
	}
	through, err := lab.publish(origin)
	if err != nil {
		return err
	}
	if err := measure(ctx, table, transport, through, lab, o); err != nil {
		return err
	}
	if o.wants("inspector") {
		if err := measureInspector(ctx, table, transport, lab, origin, o.each); err != nil {
			return err
		}
	}
	if o.wants("local API") {
		if err := measureAPI(ctx, table, transport, lab, o.each); err != nil {
			return err
		}
	}
	if o.wants("memory of an idle tcp visitor", "memory of an idle http visitor") {
		if err := measureIdleVisitors(ctx, table, transport, through, lab); err != nil {
			return err
		}
	}
	return measureRecovery(ctx, table, transport, through, lab, recoveries, o)
}
