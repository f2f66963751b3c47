package sink

import (
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/wire"
)

// The types of events.
const (
	Access  = "access"
	Audit   = "audit"
	Clients = "client"
)

// Event is one item to be sent.
type Event struct {
	Type   string       `json:"type"`
	Access *wire.Access `json:"access,omitempty"`
	Audit  *audit.Entry `json:"audit,omitempty"`
	Client *Client      `json:"client,omitempty"`
}

// The states of a Client.
const (
	Connected = "connected"
	Away      = "away"
	Faulty    = "error" // an agent reports that something went wrong on its side
)

// Client is a piece of news about a client.
type Client struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state"`
	Client   string    `json:"client"` // its name
	ClientID string    `json:"client_id"`
	// Since is when a client that is away last had an agent. It is nil if the client is
	// not away.
	Since *time.Time `json:"since,omitempty"`
	// PublicURL and Message belong to an error. An error need not concern a tunnel.
	PublicURL string `json:"public_url,omitempty"`
	Message   string `json:"message,omitempty"`
}

// batchOf returns how many of the waiting events to send together.
func batchOf(queue []Event) int {
	size := 0
	for i, e := range queue {
		if e.Access != nil {
			size += e.Access.MaxJSON()
		}
		if e.Audit != nil {
			size += 1024 + 6*(len(e.Audit.Target)+len(e.Audit.Detail))
		}
		if e.Client != nil {
			size += 512 + 6*len(e.Client.Message)
		}
		if i == maxBatch || i > 0 && size > maxBytes {
			return i
		}
	}
	return len(queue)
}
