package localapi

import (
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"

	"adit/internal/prom"
	"adit/tunnel/agent"
	"adit/tunnel/wire"
)

// Labels are bounded: methods and classes of status, states and types of tunnels. Nothing that a
// stranger chooses becomes a label.
var (
	countedMethods = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"}
	agentStates    = [...]string{
		agent.StateUnconfigured, agent.StateConnecting, agent.StateConnected,
		agent.StateReconnecting, agent.StatePaused, agent.StateRejected,
	}
	tunnelStates = [...]string{
		agent.TunnelStarting, agent.TunnelRunning, agent.TunnelWaiting, agent.TunnelStopped, agent.TunnelFailed,
	}
	tunnelTypes = [...]string{wire.TypeHTTP, wire.TypeHTTPS, wire.TypeTLS, wire.TypeTCP, wire.TypeUDP}
)

// counts holds the number of responses by method and class of status.
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
	var p prom.Text
	p.Family("adit_build_info", "gauge", "What this daemon was built from.")
	p.Sample(1, "version", s.cfg.Version, "go_version", runtime.Version())
	s.agentMetrics(&p)
	p.Family("adit_local_api_requests_total", "counter", "Answers of the local API by method and class of status.")
	for m, method := range countedMethods {
		for class := 1; class <= 5; class++ {
			if n := s.counts.answers[m][class].Load(); n > 0 {
				p.Sample(float64(n), "method", method, "class", strconv.Itoa(class)+"xx")
			}
		}
	}
	p.Family("adit_local_api_connections", "gauge", "Open connections to the local API.")
	p.Sample(float64(s.conns.open()))
	p.Family("adit_local_api_event_streams", "gauge", "Open event streams, holds and visits.")
	p.Sample(float64(s.streams.events.open.Load() + s.streams.holds.open.Load() + s.streams.visits.open.Load()))
	runtimeMetrics(&p)
	w.Header().Set("Content-Type", prom.ContentType)
	_, _ = w.Write([]byte(p.String()))
	return nil
}

// agentMetrics writes the metrics of the session and the tunnels.
func (s *Server) agentMetrics(p *prom.Text) {
	st, endpoints, tunnels := s.cfg.Agent.Status(), s.cfg.Agent.Endpoints(), s.cfg.Agent.Tunnels()
	p.Family("adit_start_time_seconds", "gauge", "When the daemon started, in seconds since 1970.")
	p.Sample(float64(st.StartedAt.Unix()))
	p.Family("adit_configured", "gauge", "Whether an auth token is configured.")
	p.Sample(prom.Truth(st.Configured))
	p.Family("adit_connected", "gauge", "Whether the relay answered within the last keep-alive interval.")
	p.Sample(prom.Truth(st.Connected))
	p.Family("adit_state", "gauge", "1 for the state that the agent is in.")
	for _, state := range agentStates {
		p.Sample(prom.Truth(st.State == state), "state", state)
	}
	p.Family("adit_rtt_seconds", "gauge", "Round trip to the relay.")
	p.Sample(st.RTTMillis / 1000)
	p.Family("adit_visitor_bytes_total", "counter", "Visitors' payload since the start.")
	p.Sample(float64(st.Bytes.In), "direction", "in")
	p.Sample(float64(st.Bytes.Out), "direction", "out")
	p.Family("adit_tunnels", "gauge", "Tunnels by state.")
	for _, state := range tunnelStates {
		n := 0
		for i := range tunnels {
			if tunnels[i].State == state {
				n++
			}
		}
		p.Sample(float64(n), "state", state)
	}
	running, open := make(map[string]float64), make(map[string]float64)
	for i := range endpoints {
		running[endpoints[i].Type]++
		open[endpoints[i].Type] += float64(endpoints[i].Connections.Open)
	}
	p.Family("adit_endpoints", "gauge", "Running endpoints by type.")
	for _, kind := range tunnelTypes {
		p.Sample(running[kind], "type", kind)
	}
	p.Family("adit_visitor_connections", "gauge", "Open connections, requests and flows of visitors by type.")
	for _, kind := range tunnelTypes {
		p.Sample(open[kind], "type", kind)
	}
}

func runtimeMetrics(p *prom.Text) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	p.Family("go_goroutines", "gauge", "Goroutines of the daemon.")
	p.Sample(float64(runtime.NumGoroutine()))
	p.Family("go_memstats_sys_bytes", "gauge", "Memory taken from the operating system.")
	p.Sample(float64(mem.Sys))
	p.Family("go_memstats_heap_alloc_bytes", "gauge", "Memory in use on the heap.")
	p.Sample(float64(mem.HeapAlloc))
}
