package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Ports is the range of ports that tunnels of a type may have. It is empty if Last is 0.
type Ports struct{ First, Last int }

// Has reports whether a port is in the range.
func (p Ports) Has(port int) bool { return p.Last != 0 && port >= p.First && port <= p.Last }

// ParsePorts parses the value of tcp_ports or udp_ports.
func ParsePorts(text string) (Ports, error) {
	if text == "none" || text == "" {
		return Ports{}, nil
	}
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		to = from
	}
	first, err1 := strconv.Atoi(strings.TrimSpace(from))
	last, err2 := strconv.Atoi(strings.TrimSpace(to))
	if err1 != nil || err2 != nil || first < 1 || last > 65535 || first > last {
		return Ports{}, fmt.Errorf("%q is not a range of ports, as 20000-20999, or none", text)
	}
	return Ports{First: first, Last: last}, nil
}
