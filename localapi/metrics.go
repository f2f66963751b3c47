package localapi

import (
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"adit/tunnel/agent"
	"adit/tunnel/wire"
)

// Labels are bounded: methods and classes of status, states and types of
// tunnels. Nothing that a stranger chooses becomes a label.
var (
	countedMethods = [...]string{"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "other"}
	agentStates    = [...]string{
		agent.StateUnconfigured, agent.StateConnecting, agent.StateConnected,
		agent.StateReconnecting, agent.StatePaused, agent.StateRejected,
	}
	tunnelStates = [...]string{
		agent.TunnelStarting, agent.TunnelRunning, agent.TunnelWaiting, agent.TunnelStopped, agent.TunnelFailed,
	}
	tunnelTypes = [...]string{wire.TypeHTTP, wire.TypeHTTPS, wire.TypeTLS, wire.TypeTCP, wire.TypeUDP}
)

// counts are the answers of this server by method and class of status.
type counts struct {
	answers [len(countedMethods)][6]atomic.Uint64
}

func (c *counts) add(method string, status int) {
	m := len(countedMethods) - 1
	for i, name := range countedMethods[:m] {
		if method == name {
			m = i
		}
	}
	class := status / 100
	if class < 1 || class > 5 {
		class = 0
	}
	c.answers[m][class].Add(1)
}

func (s *Server) getMetrics(w http.ResponseWriter, _ *http.Request) error {
	st, endpoints, tunnels := s.cfg.Agent.Status(), s.cfg.Agent.Endpoints(), s.cfg.Agent.Tunnels()
	var p promText
	p.family("adit_build_info", "gauge", "What this daemon was built from.")
	p.sample(1, "version", s.cfg.Version, "go_version", runtime.Version())
	p.family("adit_start_time_seconds", "gauge", "When the daemon started, in seconds since 1970.")
	p.sample(float64(st.StartedAt.Unix()))
	p.family("adit_configured", "gauge", "Whether an auth token is configured.")
	p.sample(truth(st.Configured))
	p.family("adit_connected", "gauge", "Whether the relay answered within the last keep-alive interval.")
	p.sample(truth(st.Connected))
	p.family("adit_state", "gauge", "1 for the state that the agent is in.")
	for _, state := range agentStates {
		p.sample(truth(st.State == state), "state", state)
	}
	p.family("adit_rtt_seconds", "gauge", "Round trip to the relay.")
	p.sample(st.RTTMillis / 1000)
	p.family("adit_visitor_bytes_total", "counter", "Visitors' payload since the start.")
	p.sample(float64(st.Bytes.In), "direction", "in")
	p.sample(float64(st.Bytes.Out), "direction", "out")
	p.family("adit_tunnels", "gauge", "Tunnels by state.")
	for _, state := range tunnelStates {
		n := 0
		for i := range tunnels {
			if tunnels[i].State == state {
				n++
			}
		}
		p.sample(float64(n), "state", state)
	}
	running, open := make(map[string]float64), make(map[string]float64)
	for i := range endpoints {
		running[endpoints[i].Type]++
		open[endpoints[i].Type] += float64(endpoints[i].Connections.Open)
	}
	p.family("adit_endpoints", "gauge", "Running endpoints by type.")
	for _, kind := range tunnelTypes {
		p.sample(running[kind], "type", kind)
	}
	p.family("adit_visitor_connections", "gauge", "Open connections, requests and flows of visitors by type.")
	for _, kind := range tunnelTypes {
		p.sample(open[kind], "type", kind)
	}
	p.family("adit_local_api_requests_total", "counter", "Answers of the local API by method and class of status.")
	for m, method := range countedMethods {
		for class := 1; class <= 5; class++ {
			if n := s.counts.answers[m][class].Load(); n > 0 {
				p.sample(float64(n), "method", method, "class", strconv.Itoa(class)+"xx")
			}
		}
	}
	p.family("adit_local_api_connections", "gauge", "Open connections to the local API.")
	p.sample(float64(s.conns.open()))
	p.family("adit_local_api_event_streams", "gauge", "Open event streams.")
	p.sample(float64(s.streams.open.Load()))
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	p.family("go_goroutines", "gauge", "Goroutines of the daemon.")
	p.sample(float64(runtime.NumGoroutine()))
	p.family("go_memstats_sys_bytes", "gauge", "Memory taken from the operating system.")
	p.sample(float64(mem.Sys))
	p.family("go_memstats_heap_alloc_bytes", "gauge", "Memory in use on the heap.")
	p.sample(float64(mem.HeapAlloc))

	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(p.b.String()))
	return nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// promText is Prometheus' text format, version 0.0.4.
type promText struct {
	b    strings.Builder
	name string
}

func (p *promText) family(name, kind, help string) {
	p.name = name
	fmt.Fprintf(&p.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one value of the family; labels are names and values in turn.
func (p *promText) sample(value float64, labels ...string) {
	p.b.WriteString(p.name)
	for i := 0; i < len(labels); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		p.b.WriteString(open + labels[i] + `="` + promEscape.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		p.b.WriteByte('}')
	}
	p.b.WriteByte(' ')
	p.b.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	p.b.WriteByte('\n')
}

var promEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
