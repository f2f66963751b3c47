package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"adit/internal/bench/bare"
)

// bareEnv is set where this program runs once more as relay or agent of the
// floor; its value says which.
const bareEnv = "ADIT_BENCH_BARE"

// bareTask is the value of bareEnv.
type bareTask struct {
	Network string      `json:"network"`
	Agent   *bare.Agent `json:"agent,omitempty"` // nil for the relay
}

// bareHere is a relay or an agent of the floor if this process was started for
// it, and returns at once if not.
func bareHere() {
	text := os.Getenv(bareEnv)
	if text == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // which ends with the benchmark
		stop()
	}()
	if err := bareRun(ctx, text); err != nil {
		fmt.Fprintln(os.Stderr, "bench: bare:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bareRun prints where it listens when it is ready.
func bareRun(ctx context.Context, text string) error {
	var task bareTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	// A fourth of the machine is this process's. Go wakes a thread to look for
	// more work on each further processor, and for that there is nothing to win.
	runtime.GOMAXPROCS(max(1, runtime.NumCPU()/4))
	out := json.NewEncoder(os.Stdout)
	if task.Agent != nil {
		task.Agent.Ready = func() { out.Encode(bare.Addrs{}) }
		return task.Agent.Run(ctx)
	}
	relay, err := bare.Listen(ctx, task.Network)
	if err != nil {
		return err
	}
	out.Encode(relay.Addrs())
	return relay.Serve(ctx)
}

// startBare starts relay and agent of the floor, with a link of that network, as
// a lab and its face.
func startBare(ctx context.Context, network string, o *origin) (l *lab, f face, err error) {
	l = new(lab)
	defer func() {
		if err != nil {
			l.close()
			l = nil
		}
	}()
	var at bare.Addrs
	if l.relay, at, err = startBareProcess(ctx, bareTask{Network: network}); err != nil {
		return l, f, err
	}
	agent := &bare.Agent{Network: network, Relay: at.Agent, Origin: bare.Addrs{TCP: o.httpAddr, UDP: o.udpAddr}}
	if l.agent, _, err = startBareProcess(ctx, bareTask{Network: network, Agent: agent}); err != nil {
		return l, f, err
	}
	return l, face{tcp: at.TCP, http: at.TCP, udp: at.UDP, origin: o, noBulk: network == "udp"}, nil
}

func startBareProcess(ctx context.Context, task bareTask) (p *process, at bare.Addrs, err error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, at, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, at, err
	}
	p = &process{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), bareEnv+"="+string(text))
	p.cmd.Stderr = &p.log
	if _, err = p.cmd.StdinPipe(); err != nil { // it ends with this process
		return nil, at, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, at, err
	}
	if err = p.cmd.Start(); err != nil {
		return nil, at, err
	}
	if err = json.NewDecoder(out).Decode(&at); err != nil {
		p.end()
		return nil, at, fmt.Errorf("start a bare relay or agent: %w\n%s", err, strings.TrimSpace(p.log.String()))
	}
	return p, at, nil
}

// bareAndLab starts the floor and the second of the two.
func bareAndLab(ctx context.Context, dir string, o *origin, setups [2]setup) (labs [2]*lab, faces [2]face, end func(), err error) {
	end = func() { closeAll(labs) }
	network := map[string]string{"dtls": "udp", "tls": "tls"}[setups[1].transport]
	setups[1].dir = dir
	if labs[0], faces[0], err = startBare(ctx, network, o); err == nil {
		if labs[1], err = startLab(ctx, setups[1]); err == nil {
			faces[1], err = labs[1].publish(o)
		}
	}
	if err != nil {
		end()
	}
	return labs, faces, end, err
}
