package console

import "time"

// Node is one node of the relay.
type Node struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Version      string    `json:"version"`
	StartedAt    time.Time `json:"started_at"`
	AgentAddress string    `json:"agent_address"`
	NodeAddress  string    `json:"node_address"` // empty on a relay of a single node
	Draining     bool      `json:"draining"`
	Self         bool      `json:"self"`      // this is the node that answers
	Reachable    bool      `json:"reachable"` // from this node
	// LostAt is when this node noticed that the node had disappeared without notice, or
	// nil if it has not.
	LostAt    *time.Time `json:"lost_at,omitempty"`
	RTT       float64    `json:"rtt_ms"`
	Sessions  int        `json:"session_count"`
	Endpoints int        `json:"endpoint_count"`
	Visitors  int64      `json:"visitor_count"`
}
