package agent

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Config configures an Agent. Only StateDir is required.
type Config struct {
	// StateDir is the folder of auth.json and tunnels.json. One agent owns it
	// at a time.
	StateDir string
	// Logger logs what happens; if nil, nothing is logged.
	Logger *slog.Logger
	// Version is adit's version, reported to the relay and shown in Status.
	Version string
	// RunBy is the command that runs the agent as a part of itself, shown in Status; may be empty.
	RunBy string
	// AuthToken configures the agent at start if it has no token yet; ClientID goes with it.
	AuthToken, ClientID string
	// Transport is what carries the session. If empty, DTLS is tried, then TLS, and the session
	// moves back to DTLS once that works again.
	Transport link.Transport
	// Dial opens a session; nil is link.Dial.
	Dial func(ctx context.Context, relay link.DialConfig) (link.Session, error)
	// Refuse returns why a tunnel must not lead to ip and port, or nil if it may; it is meant for
	// adit's own listeners. Metadata addresses are refused without it.
	Refuse func(ip netip.Addr, port int) error
	// NetworkChanged fires after a change of network or a wake-up; the agent then tries to connect
	// at once. A nil channel never fires.
	NetworkChanged <-chan struct{}
	// OriginTimeout is how long a local service may take to accept a connection. If zero, 5
	// seconds.
	OriginTimeout time.Duration
	// Inspect limits what the inspector keeps.
	Inspect inspect.Limits
	// Visitors is how many streams a session may have open in each direction. If zero, 16,384.
	Visitors int
	// Unread is how many bytes of a session may wait for local services. If zero, 64 MiB.
	Unread int64
}

// Session states (Status.State).
const (
	StateUnconfigured = "unconfigured" // no token yet
	StateConnecting   = "connecting"   // no session since the start or the token's change
	StateConnected    = "connected"    // the relay answered within the last keep-alive interval
	StateReconnecting = "reconnecting" // the session is lost, or not known to live
	StatePaused       = "paused"       // a person asked for no session
	StateRejected     = "rejected"     // the relay refused the token; not tried again until configured anew
)

// Tunnel states (Tunnel.State).
const (
	TunnelStarting = "starting" // the relay is being asked for the endpoint
	TunnelRunning  = "running"  // the endpoint answers visitors
	TunnelWaiting  = "waiting"  // no session now; it comes back by itself
	TunnelStopped  = "stopped"  // a person stopped it
	TunnelFailed   = "failed"   // the relay refused it; Error says why
)

// Status describes the agent as a whole.
type Status struct {
	Configured     bool       `json:"configured"`
	Connected      bool       `json:"connected"`
	State          string     `json:"state"`
	Relay          string     `json:"relay"`                 // host:port of the token, or where the relay moved
	ClientName     string     `json:"client_name,omitempty"` // as whom the relay knows this agent; empty without a session
	Transport      string     `json:"transport"`             // dtls or tls; empty without a session
	RTTMillis      float64    `json:"rtt_ms"`
	ConnectedSince *time.Time `json:"connected_since"` // nil without a session
	LastError      string     `json:"last_error"`      // one sentence with a hint; empty while all is well
	EndpointCount  int        `json:"endpoint_count"`
	Version        string     `json:"version"`
	OS             string     `json:"os"`
	Arch           string     `json:"arch"`
	PID            int        `json:"pid"`
	StartedAt      time.Time  `json:"started_at"`
	RunBy          string     `json:"run_by,omitempty"` // the command that the daemon is a part of, and ends with
	// Bytes counts visitors' payload since the start: In from visitors, Out to them.
	Bytes traffic.Bytes `json:"bytes"`
}

// AuthStatus describes the current token without its secret.
type AuthStatus struct {
	Configured    bool       `json:"configured"`
	Authenticated bool       `json:"authenticated"` // the relay accepted the token and the session lives
	ClientID      string     `json:"client_id"`
	Relay         string     `json:"relay"`
	TokenHint     string     `json:"token_hint"`
	ConfiguredAt  *time.Time `json:"configured_at"`
	LastError     string     `json:"last_error"`
}

// Tunnel is a snapshot of one tunnel.
type Tunnel struct {
	ID              string             `json:"id"`
	Name            string             `json:"name"`
	Type            string             `json:"type"`
	Mode            string             `json:"mode"`
	LocalIP         string             `json:"local_ip"`
	LocalPort       int                `json:"local_port"`
	LocalScheme     string             `json:"local_scheme"`
	Domain          string             `json:"domain"`      // as asked for, or as the relay gave it
	RemotePort      int                `json:"remote_port"` // as asked for, or as the relay gave it; 0 unless tcp or udp
	HostHeader      string             `json:"host_header"`
	RequestHeaders  wire.HeaderChanges `json:"request_headers"`
	ResponseHeaders wire.HeaderChanges `json:"response_headers"`
	Paths           []definition.Path  `json:"paths"`    // longest first; never nil
	Visitors        []string           `json:"visitors"` // never nil
	ProxyProtocol   string             `json:"proxy_protocol"`
	Inspect         bool               `json:"inspect"`
	Ephemeral       bool               `json:"ephemeral"`
	Declared        bool               `json:"declared"` // from adit.toml; not to be changed here
	PublicURL       string             `json:"public_url"`
	State           string             `json:"state"`
	Error           string             `json:"error"`
	CreatedAt       time.Time          `json:"created_at"`
}

// Endpoint is a running tunnel's public face.
type Endpoint struct {
	ID        string    `json:"id"`
	TunnelID  string    `json:"tunnel_id"`
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	Mode      string    `json:"mode"`
	PublicURL string    `json:"public_url"`
	Local     string    `json:"local"` // host:port of the origin
	State     string    `json:"state"` // running, or waiting while the session is away
	Since     time.Time `json:"since"`
	// Error is why the most recent visitor did not reach the local service; empty once it is
	// reachable again.
	Error       string              `json:"error"`
	Connections traffic.Connections `json:"connections"`
	Bytes       traffic.Bytes       `json:"bytes"`
}

// Event types, beside feed.TypeMissed.
const (
	EventStatus   = "status"   // Data is a Status
	EventTunnel   = "tunnel"   // Data is a TunnelEvent
	EventEndpoint = "endpoint" // Data is an EndpointEvent
	EventRequest  = "request"  // Data is an inspect.Summary, as it is when the event is read
	EventCleared  = "cleared"  // Data is a ClearedEvent
	EventLog      = "log"      // Data is a log line (see internal/logring)
)

// TunnelEvent says that a tunnel was added, changed or removed.
type TunnelEvent struct {
	Action string `json:"action"` // created, changed, deleted
	Tunnel Tunnel `json:"tunnel"`
}

// ClearedEvent says that the inspector's entries were removed.
type ClearedEvent struct {
	Requests int `json:"requests"` // how many
}

// EndpointEvent says that an endpoint was added, changed or removed.
type EndpointEvent struct {
	Action   string   `json:"action"` // up, changed, down
	Endpoint Endpoint `json:"endpoint"`
}
