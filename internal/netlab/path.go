// Package netlab builds a bad network in real time for tests and benchmarks: network namespaces,
// which act as separate hosts, and a path between two of them that delays, limits, loses and
// reorders packets. It needs Linux, root, the program ip and TUN devices, but not netem: the path
// is simulated by internal/simnet.
package netlab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"adit/internal/simnet"
)

// Path is what lies between two hosts, the same in both directions. The zero Path changes nothing.
type Path struct {
	RTT time.Duration
	// Loss and Reorder are probabilities from 0 to 1, for each packet and direction.
	Loss, Reorder float64
	// Rate is how many bytes of IP packets pass per second. If zero, as many as the machine can
	// handle.
	Rate float64
	// Buffer is how long a packet may wait for its turn. If zero, five round trips, but at least 10
	// ms.
	Buffer time.Duration
	// MTU is the size of the largest IP packet. If zero, 1,500 bytes.
	MTU int
	// TCP names the congestion control of both hosts. If empty, the system's.
	TCP string
}

// rates are the units of a rate, in bytes a second.
var rates = []struct {
	unit  string
	bytes float64
}{{"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"kbit", 1e3 / 8}}

// ParsePath parses a path such as "rtt=50ms,loss=1%,rate=100Mbit". Its keys are rtt, loss, reorder,
// rate, buffer, mtu and tcp.
func ParsePath(text string) (Path, error) {
	var p Path
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return Path{}, fmt.Errorf("path %q: %q is not of the form key=value", text, part)
		}
		if seen[key] {
			return Path{}, fmt.Errorf("path %q: %s is given twice", text, key)
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return Path{}, fmt.Errorf("path %q: %s: %w", text, key, err)
		}
	}
	return p, nil
}

func (p *Path) set(key, value string) (err error) {
	switch key {
	case "rtt":
		p.RTT, err = duration(value)
	case "buffer":
		p.Buffer, err = duration(value)
	case "loss":
		p.Loss, err = share(value)
	case "reorder":
		p.Reorder, err = share(value)
	case "rate":
		p.Rate, err = rate(value)
	case "mtu":
		if p.MTU, err = strconv.Atoi(value); err == nil && (p.MTU < 576 || p.MTU > 9000) {
			err = fmt.Errorf("%d is not from 576 to 9000", p.MTU)
		}
	case "tcp":
		if p.TCP = value; value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			err = fmt.Errorf("%q is no name of a congestion control", value)
		}
	default:
		err = fmt.Errorf("the keys are rtt, loss, reorder, rate, buffer, mtu and tcp")
	}
	return err
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d > time.Minute) {
		err = fmt.Errorf("%v is not from 0 to a minute", d)
	}
	return d, err
}

func share(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !ok && text != "0" || err != nil || !(n >= 0 && n <= 100) {
		return 0, fmt.Errorf("%q is not from 0%% to 100%%", text)
	}
	return n / 100, nil
}

func rate(text string) (float64, error) {
	for _, r := range rates {
		if number, ok := strings.CutSuffix(text, r.unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || !(n*r.bytes >= 1000 && n*r.bytes <= 1e10) {
				break
			}
			return n * r.bytes, nil
		}
	}
	return 0, fmt.Errorf("%q is not a rate such as 100Mbit, from 8kbit to 80Gbit", text)
}

// String returns the path in the format of ParsePath.
func (p Path) String() string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(true, "rtt=%v", p.RTT)
	add(true, "loss=%v%%", float32(100*p.Loss))
	add(p.Reorder > 0, "reorder=%v%%", float32(100*p.Reorder))
	for _, r := range rates {
		if p.Rate >= r.bytes || p.Rate > 0 && r.unit == "kbit" {
			add(true, "rate=%v%s", float32(p.Rate/r.bytes), r.unit)
			break
		}
	}
	add(p.Buffer > 0, "buffer=%v", p.Buffer)
	add(p.MTU > 0, "mtu=%d", p.MTU)
	add(p.TCP != "", "tcp=%s", p.TCP)
	return strings.Join(parts, ",")
}

// mtu is MTU, with its default.
func (p Path) mtu() int {
	if p.MTU == 0 {
		return 1500
	}
	return p.MTU
}

// link is what one direction of the path does.
func (p Path) link() simnet.Path {
	buffer := p.Buffer
	if buffer == 0 {
		buffer = max(5*p.RTT, 10*time.Millisecond)
	}
	return simnet.Path{
		Delay: p.RTT / 2, Loss: p.Loss, Reorder: p.Reorder,
		Rate: int(p.Rate), Buffer: max(int(p.Rate*buffer.Seconds()), 2*p.mtu()),
	}
}
