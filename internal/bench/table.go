package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// table gathers figures by name, in the order in which names first came.
type table struct {
	figures []figure
	index   map[string]int
}

func newTable() *table { return &table{index: map[string]int{}} }

func (t *table) add(name, unit, column string, value float64) {
	at, ok := t.index[name]
	if !ok {
		at = len(t.figures)
		t.index[name] = at
		t.figures = append(t.figures, figure{Name: name, Unit: unit})
	}
	f := &t.figures[at]
	switch column {
	case "direct":
		f.Direct = &value
	case "bare-udp":
		f.BareUDP = &value
	case "bare-tcp":
		f.BareTCP = &value
	case "dtls":
		f.DTLS = &value
	case "tls":
		f.TLS = &value
	}
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %s/%s, %d CPUs, load before: %s\n", r.Go, r.OS, r.Arch, r.CPUs, r.Load)
	if r.Figures != nil {
		printFigures(w, r.Figures)
	}
	for _, p := range r.Paths {
		fmt.Fprintf(w, "\n### %s\n", p.Path)
		if p.LeftOut != "" {
			fmt.Fprintf(w, "\nLeft out: %s\n", p.LeftOut)
			continue
		}
		fmt.Fprintf(w, "\nThe system's TCP has %s. Packets came %.2f ms late in the mean, %.1f ms at most.\n", p.TCP, p.Late, p.LateMost)
		printFigures(w, p.Figures)
	}
}

// columns are the table's. Those of the floor are left out where nothing was
// measured of it.
var columns = []struct {
	name string
	of   func(figure) *float64
	bare bool
}{
	{"direct", func(f figure) *float64 { return f.Direct }, false},
	{"bare UDP", func(f figure) *float64 { return f.BareUDP }, true},
	{"bare TCP", func(f figure) *float64 { return f.BareTCP }, true},
	{"DTLS", func(f figure) *float64 { return f.DTLS }, false},
	{"TLS", func(f figure) *float64 { return f.TLS }, false},
}

func printFigures(w io.Writer, figures []figure) {
	head, line := "| figure | unit |", "|---|---|"
	rows := make([]string, len(figures))
	for i, f := range figures {
		rows[i] = fmt.Sprintf("| %s | %s |", f.Name, f.Unit)
	}
	for _, c := range columns {
		if c.bare && !slices.ContainsFunc(figures, func(f figure) bool { return c.of(f) != nil }) {
			continue
		}
		head, line = head+" "+c.name+" |", line+"---|"
		for i, f := range figures {
			rows[i] += " " + number(c.of(f)) + " |"
		}
	}
	fmt.Fprintf(w, "\n%s\n%s\n%s\n", head, line, strings.Join(rows, "\n"))
}

func number(v *float64) string {
	switch {
	case v == nil:
		return "–"
	case *v < 100:
		return fmt.Sprintf("%.2f", *v)
	default:
		return fmt.Sprintf("%.0f", *v)
	}
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
