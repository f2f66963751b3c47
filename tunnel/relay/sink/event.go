package sink

import (
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/wire"
)

// Types of events.
const (
	Access  = "access"
	Audit   = "audit"
	Clients = "client"
)

// Event is one thing that is sent.
type Event struct {
	Type   string       `json:"type"`
	Access *wire.Access `json:"access,omitempty"`
	Audit  *audit.Entry `json:"audit,omitempty"`
	Client *Client      `json:"client,omitempty"`
}

// States of a Client.
const (
	Connected = "connected"
	Away      = "away"
	Faulty    = "error" // an agent reports that something went wrong at its side
)

// Client is news of a client.
type Client struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state"`
	Client   string    `json:"client"` // its name
	ClientID string    `json:"client_id"`
	// Since is when the last agent of one that is away was there; nil: it is not away.
	Since *time.Time `json:"since,omitempty"`
	// PublicURL and Message are of an error; an error need not be a tunnel's.
	PublicURL string `json:"public_url,omitempty"`
	Message   string `json:"message,omitempty"`
}

// batchOf is how many of the waiting events are sent together.
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
