// Package metrics counts what happens at a relay and reports the figures in the format of
// Prometheus.
package metrics

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/prom"
	"adit/tunnel/link"
	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/ledger"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// Labels have a fixed set of values: types, transports, outcomes, codes. No name, address
// or path of a client or visitor becomes a label.
var (
	countedTypes    = [...]string{wire.TypeHTTP, wire.TypeHTTPS, wire.TypeTLS, wire.TypeTCP, wire.TypeUDP}
	countedOutcomes = [...]string{"done", "1xx", "2xx", "3xx", "4xx", "5xx", "refused"}
	countedHellos   = [...]string{
		Accepted, wire.CodeUnauthorized, wire.CodeProtocol, wire.CodeInvalid, wire.CodeLimit, wire.CodeUnavailable,
	}
)

// Accepted is the outcome of an accepted hello; the other outcomes are codes of
// wire.Problem.
const Accepted = "accepted"

// Counts holds what has happened since the start.
type Counts struct {
	visits [len(countedTypes)][len(countedOutcomes)]atomic.Uint64
	hellos [len(countedHellos)]atomic.Uint64
}

// outcome returns the index of a visit's outcome.
func outcome(e wire.Access) int {
	switch {
	case e.Refused != "" && !strings.HasPrefix(e.Refused, "shadow:"):
		return len(countedOutcomes) - 1
	case e.Status >= 100 && e.Status < 600:
		return e.Status / 100
	}
	return 0
}

// Visit counts a visit to an endpoint of a type.
func (c *Counts) Visit(kind string, e wire.Access) {
	for i, name := range countedTypes {
		if name == kind {
			c.visits[i][outcome(e)].Add(1)
		}
	}
}

// Hello counts an agent that has identified itself, by outcome.
func (c *Counts) Hello(code string) {
	for i, name := range countedHellos {
		if name == code {
			c.hellos[i].Add(1)
		}
	}
}

// Visits returns how many visits have ended: all of them, those that a policy refused,
// and those whose origin failed.
func (c *Counts) Visits() (all, refused, failed uint64) {
	for i := range c.visits {
		for j := range c.visits[i] {
			n := c.visits[i][j].Load()
			all += n
			switch countedOutcomes[j] {
			case "refused":
				refused += n
			case "5xx":
				failed += n
			}
		}
	}
	return all, refused, failed
}

// Sources is where the figures come from.
type Sources struct {
	Version string
	Started time.Time
	Counts  *Counts
	Agents  *link.Listener
	Edge    *edge.Edge
	Store   *store.Store
	Access  *accesslog.Log
	Ledger  *ledger.Ledger
	// Sessions returns the number of connected agents, by transport.
	Sessions func() map[link.Transport]int
	// Unnamed returns the number of sessions whose agent has not identified itself yet,
	// and of those that were ended for that reason since the start.
	Unnamed func() (open int, turnedAway uint64)
	// CertificatesEnd returns the earliest expiry among the public certificates, by
	// source.
	CertificatesEnd func() map[string]time.Time
}

// Text returns the current figures. ready says whether new visitors should come here.
func (s Sources) Text(ready bool) string {
	var p prom.Text
	p.Family("adit_relay_build_info", "gauge", "What this relay was built from.")
	p.Sample(1, "version", s.Version, "go_version", runtime.Version())
	p.Family("adit_relay_start_time_seconds", "gauge", "When the relay started, in seconds since 1970.")
	p.Sample(float64(monotime.Wall(s.Started).Unix()))
	p.Family("adit_relay_ready", "gauge", "Whether new visitors should come here: the relay is not draining, nor cut off from the store while others may not be.")
	p.Sample(prom.Truth(ready))
	s.agentFigures(&p)
	s.visitorFigures(&p)
	s.certificateFigures(&p)
	s.storeFigures(&p)
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

func (s Sources) agentFigures(p *prom.Text) {
	connected := s.Sessions()
	p.Family("adit_relay_sessions", "gauge", "Agents connected, by transport.")
	for _, t := range []link.Transport{link.DTLS, link.TLS} {
		p.Sample(float64(connected[t]), "transport", string(t))
	}
	h := s.Agents.Handshakes()
	p.Family("adit_relay_handshakes_total", "counter", "Handshakes at tunnel_listen by outcome; those over DTLS that break off are not counted.")
	p.Sample(float64(h.Done), "outcome", "done")
	p.Sample(float64(h.Failed), "outcome", "failed")
	p.Sample(float64(h.TurnedAway), "outcome", "turned_away")
	p.Family("adit_relay_hellos_total", "counter", "Agents that named themselves, by outcome.")
	for i, code := range countedHellos {
		p.Sample(float64(s.Counts.hellos[i].Load()), "outcome", code)
	}
	p.Family("adit_relay_unnamed_sessions", "gauge", "Sessions whose agent has not named itself yet, or was refused a moment ago.")
	unnamed, turnedAway := s.Unnamed()
	p.Sample(float64(unnamed))
	p.Family("adit_relay_unnamed_sessions_turned_away_total", "counter", "Sessions that were ended at once: too many of their address had not named themselves.")
	p.Sample(float64(turnedAway))
	unread := s.Agents.Unread()
	p.Family("adit_relay_unread_bytes", "gauge", "Memory of what came from agents and visitors have not taken yet, beyond 4 MiB for each agent.")
	p.Sample(float64(unread.Bytes))
	p.Family("adit_relay_streams_given_up_total", "counter", "Visits that were ended because too much of what they asked for waited for them, or of what they sent for an origin.")
	p.Sample(float64(unread.GivenUp + s.Edge.GivenUp()))
	active := 0
	for _, c := range s.Store.Clients.List() {
		if c.Active() {
			active++
		}
	}
	p.Family("adit_relay_clients", "gauge", "Clients that may connect.")
	p.Sample(float64(active))
	p.Family("adit_relay_claims", "gauge", "Names and ports that clients keep.")
	p.Sample(float64(s.Store.Claims.Count()))
}

func (s Sources) visitorFigures(p *prom.Text) {
	served, open := s.Edge.Served(), s.Edge.Visitors()
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
			if n := s.Counts.visits[i][j].Load(); n > 0 {
				p.Sample(float64(n), "type", kind, "outcome", name)
			}
		}
	}
	f := s.Edge.Figures()
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

func (s Sources) certificateFigures(p *prom.Text) {
	p.Family("adit_relay_certificate_end_time_seconds", "gauge", "When the certificate ends that ends first of those shown to visitors here, in seconds since 1970, by source: file or acme.")
	ends := s.CertificatesEnd()
	for _, source := range slices.Sorted(maps.Keys(ends)) {
		p.Sample(float64(ends[source].Unix()), "source", source)
	}
}

func (s Sources) storeFigures(p *prom.Text) {
	w := s.Store.Writes()
	p.Family("adit_relay_store_connected", "gauge", "Whether the store can be reached.")
	p.Sample(prom.Truth(s.Store.Connected()))
	p.Family("adit_relay_store_condition", "gauge", "1 for what the store is like: here; away, it cannot be reached; silent, a part of it does not answer; full, it has no room; lost, what the relay kept in NATS is gone.")
	now := s.Store.Condition()
	for _, c := range store.Conditions {
		p.Sample(prom.Truth(c == now), "condition", string(c))
	}
	p.Family("adit_relay_store_writes_total", "counter", "Writes to the store by outcome.")
	p.Sample(float64(w.Done), "outcome", "done")
	p.Sample(float64(w.Errors), "outcome", "error")
	p.Family("adit_relay_store_write_seconds_total", "counter", "Time that writes took together.")
	p.Sample(w.Time.Seconds())
	p.Family("adit_relay_access_events_waiting", "gauge", "Access events not yet stored.")
	p.Sample(float64(s.Access.Waiting()))
	p.Family("adit_relay_access_events_dropped_total", "counter", "Access events that were never stored.")
	p.Sample(float64(s.Access.Lost()))
	p.Family("adit_relay_audit_lines_waiting", "gauge", "Lines that wait in the data folder for the audit log.")
	p.Sample(float64(s.Ledger.Waiting()))
}
