package relay

import (
	"runtime"
	"strings"
	"sync/atomic"

	"adit/internal/monotime"
	"adit/internal/prom"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Labels are bounded: types, transports, outcomes, codes. No name, address or
// path of a client or visitor becomes a label.
var (
	countedTypes    = [...]string{wire.TypeHTTP, wire.TypeHTTPS, wire.TypeTLS, wire.TypeTCP, wire.TypeUDP}
	countedOutcomes = [...]string{"done", "1xx", "2xx", "3xx", "4xx", "5xx", "refused"}
	countedHellos   = [...]string{
		"accepted", wire.CodeUnauthorized, wire.CodeProtocol, wire.CodeInvalid, wire.CodeLimit, wire.CodeUnavailable,
	}
)

// counts are what happened since the start.
type counts struct {
	visits [len(countedTypes)][len(countedOutcomes)]atomic.Uint64
	hellos [len(countedHellos)]atomic.Uint64
}

// outcome is the index of what became of a visitor.
func outcome(e wire.Access) int {
	switch {
	case e.Refused != "" && !strings.HasPrefix(e.Refused, "shadow:"):
		return len(countedOutcomes) - 1
	case e.Status >= 100 && e.Status < 600:
		return e.Status / 100
	}
	return 0
}

func (c *counts) visit(kind string, e wire.Access) {
	for i, name := range countedTypes {
		if name == kind {
			c.visits[i][outcome(e)].Add(1)
		}
	}
}

func (c *counts) hello(code string) {
	for i, name := range countedHellos {
		if name == code {
			c.hellos[i].Add(1)
		}
	}
}

// Ready says why the relay should get no new visitors, or "".
func (o operator) Ready() string {
	o.mu.Lock()
	draining := o.draining
	o.mu.Unlock()
	switch {
	case draining:
		return "draining"
	case !o.store.Connected():
		return "store_away"
	}
	return ""
}

// Metrics are the relay's figures as Prometheus reads them.
func (o operator) Metrics() string {
	var p prom.Text
	p.Family("adit_relay_build_info", "gauge", "What this relay was built from.")
	p.Sample(1, "version", o.opts.Version, "go_version", runtime.Version())
	p.Family("adit_relay_start_time_seconds", "gauge", "When the relay started, in seconds since 1970.")
	p.Sample(float64(monotime.Wall(o.started).Unix()))
	p.Family("adit_relay_ready", "gauge", "Whether new visitors should come here: the store answers, and the relay is not draining.")
	p.Sample(prom.Truth(o.Ready() == ""))
	o.agentFigures(&p)
	o.visitorFigures(&p)
	o.storeFigures(&p)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	p.Family("go_goroutines", "gauge", "Goroutines of the relay.")
	p.Sample(float64(runtime.NumGoroutine()))
	p.Family("go_memstats_sys_bytes", "gauge", "Memory taken from the operating system.")
	p.Sample(float64(mem.Sys))
	p.Family("go_memstats_heap_alloc_bytes", "gauge", "Memory in use on the heap.")
	p.Sample(float64(mem.HeapAlloc))
	return p.String()
}

func (o operator) agentFigures(p *prom.Text) {
	connected := map[link.Transport]int{}
	for _, s := range o.sessionList() {
		connected[s.link.Transport()]++
	}
	p.Family("adit_relay_sessions", "gauge", "Agents connected, by transport.")
	for _, t := range []link.Transport{link.DTLS, link.TLS} {
		p.Sample(float64(connected[t]), "transport", string(t))
	}
	h := o.listener.Handshakes()
	p.Family("adit_relay_handshakes_total", "counter", "Handshakes at tunnel_listen by outcome; those over DTLS that break off are not counted.")
	p.Sample(float64(h.Done), "outcome", "done")
	p.Sample(float64(h.Failed), "outcome", "failed")
	p.Sample(float64(h.TurnedAway), "outcome", "turned_away")
	p.Family("adit_relay_hellos_total", "counter", "Agents that named themselves, by outcome.")
	for i, code := range countedHellos {
		p.Sample(float64(o.counts.hellos[i].Load()), "outcome", code)
	}
	p.Family("adit_relay_unnamed_sessions", "gauge", "Sessions whose agent has not named itself yet, or was refused a moment ago.")
	p.Sample(float64(o.strangers.open()))
	p.Family("adit_relay_unnamed_sessions_turned_away_total", "counter", "Sessions that were ended at once: too many of their address had not named themselves.")
	p.Sample(float64(o.strangers.turnedAway.Load()))
	unread := o.listener.Unread()
	p.Family("adit_relay_unread_bytes", "gauge", "Memory of what came from agents and visitors have not taken yet, beyond 4 MiB for each agent.")
	p.Sample(float64(unread.Bytes))
	p.Family("adit_relay_streams_given_up_total", "counter", "Visits that were ended because too much of what they asked for waited for them, or of what they sent for an origin.")
	p.Sample(float64(unread.GivenUp + o.edge.GivenUp()))
	active := 0
	for _, c := range o.store.Clients.List() {
		if c.Active() {
			active++
		}
	}
	p.Family("adit_relay_clients", "gauge", "Clients that may connect.")
	p.Sample(float64(active))
	p.Family("adit_relay_claims", "gauge", "Names and ports that clients keep.")
	p.Sample(float64(o.store.Claims.Count()))
}

func (o operator) visitorFigures(p *prom.Text) {
	served, open := o.edge.Served(), o.edge.Visitors()
	p.Family("adit_relay_endpoints", "gauge", "Endpoints that are served, by type.")
	for _, kind := range countedTypes {
		p.Sample(float64(served[kind]), "type", kind)
	}
	p.Family("adit_relay_visitors", "gauge", "Requests, connections and flows under way, by type.")
	for _, kind := range countedTypes {
		p.Sample(float64(open[kind]), "type", kind)
	}
	p.Family("adit_relay_visits_total", "counter", "Requests, connections and flows that ended, by type and outcome: a class of status, refused by a policy, or done.")
	for i, kind := range countedTypes {
		for j, name := range countedOutcomes {
			if n := o.counts.visits[i][j].Load(); n > 0 {
				p.Sample(float64(n), "type", kind, "outcome", name)
			}
		}
	}
	f := o.edge.Figures()
	p.Family("adit_relay_visitor_connections", "gauge", "TCP connections of visitors that are open.")
	p.Sample(float64(f.Connections))
	p.Family("adit_relay_connections_turned_away_total", "counter", "Connections over the limit of an address or of all, and requests.")
	p.Sample(float64(f.TurnedAway))
	p.Family("adit_relay_connections_spared_total", "counter", "Connections that asked for nothing and were ended to make room for others.")
	p.Sample(float64(f.Spared))
	p.Family("adit_relay_requests_unknown_total", "counter", "Requests for a name that no endpoint serves.")
	p.Sample(float64(f.Unknown))
	p.Family("adit_relay_udp_packets_dropped_total", "counter", "Packets of udp visitors that were dropped: over a bandwidth, or to an address that is not proved.")
	p.Sample(float64(f.OverBandwidth), "reason", "bandwidth")
	p.Sample(float64(f.Unproved), "reason", "unproved")
	p.Family("adit_relay_visitor_bytes_total", "counter", "Visitors' payload.")
	p.Sample(float64(f.BytesIn), "direction", "in")
	p.Sample(float64(f.BytesOut), "direction", "out")
}

func (o operator) storeFigures(p *prom.Text) {
	w := o.store.Writes()
	p.Family("adit_relay_store_connected", "gauge", "Whether the store can be reached.")
	p.Sample(prom.Truth(o.store.Connected()))
	p.Family("adit_relay_store_writes_total", "counter", "Writes to the store by outcome.")
	p.Sample(float64(w.Done), "outcome", "done")
	p.Sample(float64(w.Errors), "outcome", "error")
	p.Family("adit_relay_store_write_seconds_total", "counter", "Time that writes took together.")
	p.Sample(w.Time.Seconds())
	p.Family("adit_relay_access_events_waiting", "gauge", "Access events not yet stored.")
	p.Sample(float64(o.access.Waiting()))
	p.Family("adit_relay_access_events_dropped_total", "counter", "Access events that were never stored.")
	p.Sample(float64(o.access.Lost()))
	p.Family("adit_relay_audit_lines_waiting", "gauge", "Lines that wait in the data folder for the audit log.")
	p.Sample(float64(o.ledger.Waiting()))
}
