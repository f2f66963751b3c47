// Package fleet runs many agents in one process, each with its own address and state folder, so
// that a relay can be measured with as many agents as it may have.
package fleet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
	"adit/tunnel/link"
)

// lookEvery is how often the agents are counted.
const lookEvery = 100 * time.Millisecond

// Fleet is a set of agents. All fields except Port are required.
type Fleet struct {
	Dir       string         `json:"dir"`    // where their state folders are
	Tokens    []string       `json:"tokens"` // which they have in turn
	Agents    int            `json:"agents"`
	Transport link.Transport `json:"transport"`
	// Port is what each agent's http tunnel leads to; if 0, agents have no tunnel.
	Port int `json:"port"`
	// Count is called whenever the number of agents in the wanted state changes.
	Count func(Count) `json:"-"`
}

// Count is the number of connected agents, and of their endpoints.
type Count struct {
	Connected int `json:"connected"`
	Running   int `json:"running"`
}

// Run runs the agents until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	all := make([]*agent.Agent, f.Agents)
	for i := range all {
		a, err := agent.New(agent.Config{
			StateDir: filepath.Join(f.Dir, fmt.Sprint("agent", i)), AuthToken: f.Tokens[i%len(f.Tokens)],
			Transport: f.Transport, Dial: dialFrom(address(i)),
		})
		if err != nil {
			return err
		}
		all[i] = a
		group.Go(func() error { return a.Run(ctx) })
		if f.Port != 0 && len(a.Tunnels()) == 0 {
			if err := a.Declare(ctx, []definition.Tunnel{{Type: "http", LocalPort: f.Port, Name: fmt.Sprint("agent", i)}}); err != nil {
				return err
			}
		}
	}
	group.Go(func() error {
		f.watch(ctx, all)
		return nil
	})
	return group.Wait()
}

// watch counts until ctx ends.
func (f *Fleet) watch(ctx context.Context, all []*agent.Agent) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := Count{-1, -1}
	for {
		var now Count
		for _, a := range all {
			if a.Status().Connected {
				now.Connected++
			}
			for _, t := range a.Tunnels() {
				if t.State == agent.TunnelRunning {
					now.Running++
				}
			}
		}
		if now != last {
			last = now
			f.Count(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// address is that of an agent: 127.1.0.0 and so on.
func address(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + i>>16), byte(i >> 8), byte(i)})
}

// dialFrom dials relays from an address, as a machine with no other would.
func dialFrom(from netip.Addr) func(context.Context, link.DialConfig) (link.Session, error) {
	tcp := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	return func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
		cfg.NoWatch = true
		cfg.DialContext = tcp.DialContext
		cfg.ListenPacket = func(ctx context.Context, _ netip.AddrPort) (net.PacketConn, error) {
			return new(net.ListenConfig).ListenPacket(ctx, "udp4", netip.AddrPortFrom(from, 0).String())
		}
		return link.Dial(ctx, cfg)
	}
}
