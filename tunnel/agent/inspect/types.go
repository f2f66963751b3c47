// Package inspect shows what passes through tunnels: requests and responses of HTTP tunnels, and
// flows of the other types. It works on copies of the traffic and never delays the traffic itself:
// if it cannot keep up, it loses what it would have shown. The memory it uses is bounded.
package inspect

import "time"

// Limits bounds what an Inspector keeps.
type Limits struct {
	// Memory is the most memory that all entries together may hold, in bytes. If zero, 64 MiB; if
	// negative, the inspector is off.
	Memory int
	// Body is how much of one body is kept at most, in bytes. If zero, 512 KiB.
	Body int
	// Entries is how many entries are kept at most. If zero, 10,000.
	Entries int
}

// Kinds of an entry.
const (
	KindHTTP = "http" // one request with its response
	KindFlow = "flow" // one connection of a tcp or tls tunnel, one flow of udp
)

// Summary is one line of the list.
type Summary struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	TunnelID   string    `json:"tunnel_id"`
	TunnelName string    `json:"tunnel_name"`
	Type       string    `json:"type"` // the tunnel's
	Time       time.Time `json:"time"`
	Visitor    string    `json:"visitor"`          // address:port
	Client     string    `json:"client,omitempty"` // that visits a private tunnel
	// TunnelPath is the tunnel's path that led the request to its own service.
	TunnelPath string `json:"tunnel_path,omitempty"`
	// State is open while bytes may still come, then done or failed.
	State          string  `json:"state"`
	DurationMillis float64 `json:"duration_ms"`
	Method         string  `json:"method,omitempty"`
	Host           string  `json:"host,omitempty"`
	Path           string  `json:"path,omitempty"` // with the query, as the origin gets it
	Status         int     `json:"status,omitempty"`
	ContentType    string  `json:"content_type,omitempty"` // of the response
	BytesIn        int64   `json:"bytes_in"`               // from the visitor
	BytesOut       int64   `json:"bytes_out"`              // to the visitor
	Error          string  `json:"error,omitempty"`
	// ReplayOf is the entry that this one repeats.
	ReplayOf string `json:"replay_of,omitempty"`
	// Imported is set for entries from a HAR file.
	Imported bool `json:"imported,omitempty"`
}

// Header is one header field; the order of fields is preserved.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Redacted is set if the value is hidden.
	Redacted bool `json:"redacted,omitempty"`
}

// Body is the part of a message's body that was kept.
type Body struct {
	// Size is the body's size on the wire, in bytes.
	Size int64 `json:"size"`
	// Text is the body for viewing, decompressed, if it is text.
	Text string `json:"text,omitempty"`
	// Base64 is the body for viewing, if it is not text.
	Base64 string `json:"base64,omitempty"`
	// Encoding is the Content-Encoding that was undone for viewing.
	Encoding string `json:"encoding,omitempty"`
	// Truncated is set if the body was longer than what was kept.
	Truncated bool `json:"truncated,omitempty"`
}

// Message is a request or a response.
type Message struct {
	// Line is the request line or status line as it was sent.
	Line    string   `json:"line"`
	Proto   string   `json:"proto"`
	Headers []Header `json:"headers"`
	Body    Body     `json:"body"`
}

// Detail is one entry in full.
type Detail struct {
	Summary
	Request  *Message `json:"request,omitempty"`
	Response *Message `json:"response,omitempty"`
	// Messages are the newest messages of a WebSocket, oldest first; MessagesMissed counts the
	// earlier ones.
	Messages       []SocketMessage `json:"messages,omitempty"`
	MessagesMissed int             `json:"messages_missed,omitempty"`
	// Curl is a shell command that repeats the request.
	Curl string `json:"curl,omitempty"`
	// URL is the request's public address.
	URL string `json:"url,omitempty"`
}

// Filter selects entries; its zero value selects all.
type Filter struct {
	TunnelID string
	Kind     string
	Method   string
	// Status is one status (404), or a class (4 for all 4xx); 0 for all.
	Status int
	// Text is searched for in method, host with path, status, visitor and tunnel, joined into one
	// line, ignoring case.
	Text string
	// Since and Until bound the time; zero means unbounded.
	Since, Until time.Time
	// Before is the id of an entry; only older ones are returned (older entries follow newer ones).
	// If empty, the list starts with the newest.
	Before string
	// Limit is how many entries are returned at most. If zero, 100; the maximum is 10,000.
	Limit int
}

// Edit changes a request that is repeated; nil and empty fields keep the original.
type Edit struct {
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"` // with the query
	// Headers, if not nil, replaces all header fields.
	Headers []Header `json:"headers,omitempty"`
	// Body, if not nil, replaces the body.
	Body *string `json:"body,omitempty"`
	// BodyBase64, if not nil, replaces the body with binary data.
	BodyBase64 *string `json:"body_base64,omitempty"`
}
