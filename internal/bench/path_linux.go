package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/netlab"
)

// measurePath measures with relay and visitors on one host, agent and origin on
// another, and the path between them. This program runs once more on the
// former. Without root it says so in the report.
func measurePath(ctx context.Context, o options, path netlab.Path) (rep pathReport, err error) {
	rep.Path = path.String()
	network, err := netlab.New(path)
	if errors.Is(err, unix.EPERM) {
		fmt.Fprintf(os.Stderr, "bench: %s is left out: it needs root\n", rep.Path)
		rep.LeftOut = "it needs root"
		return rep, nil
	}
	if err != nil {
		return rep, err
	}
	program, err := os.Executable()
	if err != nil {
		return rep, err
	}
	cmd := exec.CommandContext(ctx, program, "-program", o.program, "-each", o.each.String(),
		"-transports", strings.Join(o.transports, ","), "-only", o.only.String())
	cmd.Env = append(os.Environ(), farEnv+"="+network.Far.Path())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it has processes to end
	cmd.WaitDelay = time.Minute
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // one interrupt is enough
	if err = network.Near.Do(func() error {
		if o.urgent {
			netlab.Urgent() // and all that it starts
		}
		return cmd.Start()
	}); err == nil {
		err = cmd.Wait()
	}
	seen, closeErr := network.Close()
	if err := errors.Join(err, closeErr); err != nil {
		return rep, err
	}
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		return rep, err
	}
	rep.Path = path.String()
	rep.Late, rep.LateMost = seen.Late.Seconds()*1e3, seen.LateMost.Seconds()*1e3
	return rep, nil
}

// measureHere measures on the host of relay and visitors, and prints a report as
// JSON. far is the other host.
func measureHere(ctx context.Context, o options, far string) error {
	o.plan = pathPlan
	space, err := netlab.OpenSpace(far)
	if err != nil {
		return err
	}
	defer space.Close()
	dir, err := os.MkdirTemp("", "adit-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var origin *origin
	if err := space.Do(func() (err error) {
		origin, err = startOrigin("0.0.0.0")
		return err
	}); err != nil {
		return err
	}
	defer origin.close()
	origin.movedTo(netlab.FarAddr)
	control, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		return err
	}
	rep, table := pathReport{TCP: strings.TrimSpace(string(control))}, newTable()
	for _, transport := range o.transports {
		if transport == "direct" {
			err = measure(ctx, table, transport, origin.direct(), nil, o)
		} else {
			err = measureTunnel(ctx, table, transport, origin, setup{
				program: o.program, dir: filepath.Join(dir, transport), transport: transport,
				host: netlab.NearAddr, elsewhere: space.Do,
			}, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", transport, err)
		}
	}
	rep.Figures = table.figures
	return json.NewEncoder(os.Stdout).Encode(rep)
}

// measureTunnel fills the column of a transport.
func measureTunnel(ctx context.Context, t *table, column string, origin *origin, s setup, o options) error {
	lab, err := startLab(ctx, s)
	if err != nil {
		return err
	}
	defer lab.close()
	t.add("agent start to connected", "ms", column, float64(lab.startTime.Milliseconds()))
	through, err := lab.publish(origin)
	if err != nil {
		return err
	}
	if err := measure(ctx, t, column, through, lab, o); err != nil {
		return err
	}
	return measureRecovery(ctx, t, column, through, lab, recoveriesOnPath, o)
}
