package console

import (
	"time"

	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// Status is a summary of the relay.
type Status struct {
	State        string    `json:"status"` // "ok" or "draining"
	Store        string    `json:"store"`  // here, away, silent, full, lost: see store.Condition
	Version      string    `json:"version"`
	Node         string    `json:"node"`
	Domain       string    `json:"domain"`
	StartedAt    time.Time `json:"started_at"`
	TunnelListen string    `json:"tunnel_listen"`
	EdgeHTTP     string    `json:"edge_http_listen"`
	EdgeHTTPS    string    `json:"edge_https_listen"`
	Console      string    `json:"console_listen"`
	CAFile       string    `json:"ca_file"`
	GeoDatabase  bool      `json:"geo_database"`
	Clients      int       `json:"client_count"`
	Sessions     int       `json:"session_count"`
	Endpoints    int       `json:"endpoint_count"`
	Claims       int       `json:"claim_count"`
}

// Client is a client as the operator sees it.
type Client struct {
	Tag       string        `json:"-"` // the ETag of its scope; only for a single client
	Name      string        `json:"name"`
	ClientID  string        `json:"client_id"`
	State     string        `json:"state"` // active, expired, revoked
	CreatedAt time.Time     `json:"created_at"`
	RevokedAt *time.Time    `json:"revoked_at,omitempty"`
	Tokens    []Token       `json:"tokens"`
	Sessions  int           `json:"session_count"`
	Claims    int           `json:"claim_count"`
	Tunnels   int           `json:"tunnel_count"`
	Scope     Scope         `json:"scope"`
	Usage     Usage         `json:"usage"`
	Seen      *store.Seen   `json:"seen,omitempty"`
	Proof     *Record       `json:"proof,omitempty"`  // only for a single client
	Errors    []ClientError `json:"errors,omitempty"` // only for a single client, newest first
}

// Token identifies one of a client's tokens.
type Token struct {
	Hint      string     `json:"hint"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// NewToken is the result of adding a client or rotating its token, shown only once.
type NewToken struct {
	Name      string `json:"name"`
	ClientID  string `json:"client_id"`
	AuthToken string `json:"auth_token"`
}

// Session is one connected agent.
type Session struct {
	ID            string            `json:"id"`
	Client        string            `json:"client"`
	ClientID      string            `json:"client_id"`
	Instance      string            `json:"instance"`
	Address       string            `json:"address"`
	Transport     string            `json:"transport"`
	Version       string            `json:"version"`
	OS            string            `json:"os"`
	Arch          string            `json:"arch"`
	Hostname      string            `json:"hostname,omitempty"`
	Since         time.Time         `json:"since"`
	RTT           float64           `json:"rtt_ms"`
	Tunnels       int               `json:"tunnel_count"`
	BytesSent     uint64            `json:"bytes_sent"`
	BytesReceived uint64            `json:"bytes_received"`
	Errors        []wire.AgentError `json:"errors,omitempty"`
}

// Endpoint is one public face that is being served.
type Endpoint struct {
	ID          string      `json:"id"`
	Target      string      `json:"target"`
	Type        string      `json:"type"`
	Mode        string      `json:"mode"`
	PublicURL   string      `json:"public_url"`
	Clients     []string    `json:"clients"`
	Agents      int         `json:"agent_count"`
	Visitors    []string    `json:"visitors"` // of a private tunnel: the clients that it names
	Since       time.Time   `json:"since"`
	Connections Connections `json:"connections"`
	Bytes       Bytes       `json:"bytes"`
	Policy      bool        `json:"policy"`
}

// Connections counts visitors.
type Connections struct {
	Open  int64 `json:"open"`
	Total int64 `json:"total"`
}

// Bytes counts payload: in from visitors, out to them.
type Bytes struct {
	In  int64 `json:"in"`
	Out int64 `json:"out"`
}

// Claim is a name or port that a client has, whether or not it is in use.
type Claim struct {
	Target    string    `json:"target"`
	Client    string    `json:"client"`
	ClientID  string    `json:"client_id"`
	CreatedAt time.Time `json:"created_at"`
	Running   bool      `json:"running"`
}

// Policy is the policy of a target: a domain, or "tcp.PORT" or "udp.PORT".
type Policy struct {
	Tag       string          `json:"-"` // the ETag, which changes with every change
	Target    string          `json:"target"`
	ChangedAt time.Time       `json:"changed_at"`
	SetBy     string          `json:"set_by"` // "operator", or a client's name
	Policy    policy.Document `json:"policy"`
}

// Question describes a visitor to explain.
type Question struct {
	Target   string `json:"target"`
	Address  string `json:"address"`
	Path     string `json:"path,omitempty"`
	At       string `json:"at,omitempty"` // a time; empty: now
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	// Email and Groups belong to a visitor that has signed in.
	Email  string   `json:"email,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Signed bool     `json:"signed,omitempty"` // it is a webhook with a valid signature
	// Certificate is what the visitor presents, as PEM, with its own certificate first.
	// If empty, nothing.
	Certificate string `json:"certificate,omitempty"`
	Type        string `json:"type,omitempty"`
}

// Explanation says what would happen to a visitor, and which rule decides.
type Explanation struct {
	Target  string        `json:"target"`
	Path    string        `json:"path,omitempty"`
	Country string        `json:"country,omitempty"`
	Node    string        `json:"node"`
	Allowed bool          `json:"allowed"`
	Rule    string        `json:"rule,omitempty"`
	Detail  string        `json:"detail,omitempty"`
	Shadow  bool          `json:"shadow,omitempty"`
	Steps   []policy.Step `json:"steps"`
}

// Access is a question to the access log. A zero field selects all.
type Access = accesslog.Question

// Error is a request that cannot be carried out. It becomes the answer.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// envelope wraps every answer that has a body.
type envelope struct {
	Data  any    `json:"data,omitempty"`
	Error *Error `json:"error,omitempty"`
}

type items struct {
	Items any `json:"items"`
}
