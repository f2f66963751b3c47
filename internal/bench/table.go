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
		t.figures = append(t.figures, figure{Name: name, Unit: unit, Values: map[string]float64{}})
	}
	t.figures[at].Values[column] = value
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

// columnOf is a column of the table. An optional one is left out where nothing
// was measured of it.
type columnOf struct {
	name, title string
	optional    bool
}

var columns = []columnOf{
	{"direct", "direct", false},
	{"bare-udp", "bare UDP", true},
	{"bare-tcp", "bare TCP", true},
	{"bare-tls", "bare TLS", true},
	{"ssh", "ssh -R", true},
	{"dtls", "DTLS", false},
	{"tls", "TLS", false},
}

func printFigures(w io.Writer, figures []figure) {
	head, line := "| figure | unit |", "|---|---|"
	rows := make([]string, len(figures))
	for i, f := range figures {
		rows[i] = fmt.Sprintf("| %s | %s |", f.Name, f.Unit)
	}
	for _, c := range columns {
		if c.optional && !slices.ContainsFunc(figures, func(f figure) bool { return f.measured(c.name) }) {
			continue
		}
		head, line = head+" "+c.title+" |", line+"---|"
		for i, f := range figures {
			rows[i] += " " + f.value(c.name) + " |"
		}
	}
	fmt.Fprintf(w, "\n%s\n%s\n%s\n", head, line, strings.Join(rows, "\n"))
}

func (f figure) measured(column string) bool {
	_, ok := f.Values[column]
	return ok
}

// value is a figure as a table shows it.
func (f figure) value(column string) string {
	switch v, ok := f.Values[column]; {
	case !ok:
		return "–"
	case v < 100:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
