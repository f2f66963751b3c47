package main

import (
	"fmt"

	"adit/internal/netlab"
)

// paths are what the option -path asks for.
type paths struct {
	loop bool
	bad  []netlab.Path
}

// usual are the paths that everybody asks about: across a continent at three
// losses, and a good line to a near place.
var usual = []string{
	"rtt=50ms,loss=0%,rate=100Mbit",
	"rtt=50ms,loss=1%,rate=100Mbit",
	"rtt=50ms,loss=3%,rate=100Mbit",
	"rtt=5ms,loss=0%,rate=1Gbit",
}

// loopback reports whether loopback is one of them: it is when none was named.
func (p *paths) loopback() bool { return p.loop || len(p.bad) == 0 }

func (p *paths) String() string { return "" }

// Set adds one path, or several by name.
func (p *paths) Set(text string) error {
	switch text {
	case "loopback":
		p.loop = true
		return nil
	case "usual":
		for _, one := range usual {
			if err := p.Set(one); err != nil {
				return err
			}
		}
		return nil
	}
	path, err := netlab.ParsePath(text)
	if err != nil {
		return fmt.Errorf("%w (or say loopback, or usual)", err)
	}
	p.bad = append(p.bad, path)
	return nil
}

// pathReport is what was measured over a path.
type pathReport struct {
	Path string `json:"path"`
	// TCP is the hosts' congestion control, which the direct path uses.
	TCP string `json:"tcp,omitempty"`
	// Late is by how many milliseconds packets were later than the path specifies, on average, and
	// LateMost at most: the machine had other work.
	Late     float64  `json:"late_ms"`
	LateMost float64  `json:"late_most_ms"`
	LeftOut  string   `json:"left_out,omitempty"` // why nothing was measured
	Figures  []figure `json:"figures,omitempty"`
}

// farEnv is set where this program runs once more as relay and visitors, to
// the network namespace of agent and origin.
const farEnv = "ADIT_BENCH_FAR"
