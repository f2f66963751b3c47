// Code generated from openapi.yaml by internal/gen. DO NOT EDIT.

package client

import "time"

// Health: The daemon answers.
type Health struct {
	Status string `json:"status"`
	// The daemon's version.
	Version string `json:"version"`
}

// ErrorCode: What went wrong, for programs. New codes may come.
type ErrorCode string

// Values of ErrorCode.
const (
	ErrorCodeInvalidJSON          ErrorCode = "invalid_json"
	ErrorCodeInvalidParameter     ErrorCode = "invalid_parameter"
	ErrorCodeInvalidToken         ErrorCode = "invalid_token"
	ErrorCodeRelayRejected        ErrorCode = "relay_rejected"
	ErrorCodeNotConfigured        ErrorCode = "not_configured"
	ErrorCodeUnauthorized         ErrorCode = "unauthorized"
	ErrorCodeForbiddenHost        ErrorCode = "forbidden_host"
	ErrorCodeForbiddenOrigin      ErrorCode = "forbidden_origin"
	ErrorCodeNotFound             ErrorCode = "not_found"
	ErrorCodeMethodNotAllowed     ErrorCode = "method_not_allowed"
	ErrorCodeControlBusy          ErrorCode = "control_busy"
	ErrorCodePayloadTooLarge      ErrorCode = "payload_too_large"
	ErrorCodeUnsupportedMediaType ErrorCode = "unsupported_media_type"
	ErrorCodeInternal             ErrorCode = "internal"
	ErrorCodeRelayUnreachable     ErrorCode = "relay_unreachable"
	ErrorCodeTooManyStreams       ErrorCode = "too_many_streams"
	ErrorCodePreconditionFailed   ErrorCode = "precondition_failed"
)

// AuthConfigure: The token to use from now on.
type AuthConfigure struct {
	// From `adit relay client add`, or the relay's console. A secret.
	AuthToken string `json:"auth_token"`
	// The id or name of the relay's client that the token has to be of: one of another client is refused.
	ClientID string `json:"client_id,omitempty"`
}

// AuthStatus: The token in force, never its secret.
type AuthStatus struct {
	// A token is stored.
	Configured bool `json:"configured"`
	// The relay accepted it and the session lives.
	Authenticated bool `json:"authenticated"`
	// What was given; else the id that the relay has for this client, once it has accepted the token in this run of the daemon.
	ClientID string `json:"client_id"`
	// The relay's address; empty without a token.
	Relay string `json:"relay"`
	// Tells tokens apart without giving them away.
	TokenHint    string     `json:"token_hint"`
	ConfiguredAt *time.Time `json:"configured_at"`
	// Why the relay did not accept it; empty while all is well.
	LastError string `json:"last_error"`
}

// Bytes: Visitors' payload since the daemon's start.
type Bytes struct {
	// From visitors to the origin.
	In int64 `json:"in"`
	// From the origin to visitors.
	Out int64 `json:"out"`
}

// Status: The agent as a whole.
type Status struct {
	// A token is stored.
	Configured bool `json:"configured"`
	// The relay answered within the last keep-alive interval.
	Connected bool `json:"connected"`
	// `unconfigured`: no token yet. `connecting`: no session since the start or the token's change.
	// `connected`: see `connected`. `reconnecting`: the session is lost, or not known to live.
	// `paused`: until resumed. `rejected`: the relay refuses the token; `last_error` says why and
	// what helps. It is not tried again but where the relay asks for that, as with an expired client.
	State string `json:"state"`
	// The relay's address; empty without a token.
	Relay string `json:"relay"`
	// The name by which the relay knows this client; absent without a session.
	ClientName string `json:"client_name,omitempty"`
	// What carries the session; empty without one.
	Transport string `json:"transport"`
	// Round trip to the relay; 0 if not measured.
	RTTMillis      float64    `json:"rtt_ms"`
	ConnectedSince *time.Time `json:"connected_since"`
	// Why there is no session; empty while all is well.
	LastError string `json:"last_error"`
	// How many endpoints run.
	EndpointCount int `json:"endpoint_count"`
	// The daemon's version.
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// The daemon's process.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	// The command that the daemon is a part of and ends with; absent where it is there by itself.
	RunBy string `json:"run_by,omitempty"`
	Bytes Bytes  `json:"bytes"`
}

// Setting: One value in force.
type Setting struct {
	// As in `adit.toml`, with its table.
	Key string `json:"key"`
	// The value; of a secret only a hint.
	Value any `json:"value"`
	// Where it comes from.
	Source string `json:"source"`
	// The value is only a hint.
	Secret bool `json:"secret,omitempty"`
}

// ConfigError: A mistake in the file. Its tunnels change once it is mended; if the daemon started with it, none of them runs until then.
type ConfigError struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Key     string `json:"key,omitempty"`
}

// Config: The configuration in force.
type Config struct {
	ConfigFile       string       `json:"config_file"`
	ConfigFileExists bool         `json:"config_file_exists"`
	StateDir         string       `json:"state_dir"`
	Settings         []Setting    `json:"settings"`
	Error            *ConfigError `json:"error,omitempty"`
}

// Connections: Visitors' connections (`tcp`, `tls`), requests (`http`, `https`) or flows (`udp`).
type Connections struct {
	Open  int64 `json:"open"`
	Total int64 `json:"total"`
}

// Endpoint: A running tunnel's public face.
type Endpoint struct {
	ID        string     `json:"id"`
	TunnelID  string     `json:"tunnel_id"`
	Name      string     `json:"name"`
	Type      TunnelType `json:"type"`
	Mode      TunnelMode `json:"mode"`
	PublicURL string     `json:"public_url"`
	// The origin's address.
	Local string `json:"local"`
	// `running`, or `waiting` while the session is away; in an event `down` the tunnel's own.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Why the newest visitor was not led to the local service, as that nothing listens there; empty once it is reached again, which is looked for.
	Error       string      `json:"error"`
	Connections Connections `json:"connections"`
	Bytes       Bytes       `json:"bytes"`
}

// TunnelType: `tls` is passed through by its server name and never decrypted by the relay.
type TunnelType string

// Values of TunnelType.
const (
	TunnelTypeHTTP  TunnelType = "http"
	TunnelTypeHTTPS TunnelType = "https"
	TunnelTypeTLS   TunnelType = "tls"
	TunnelTypeTCP   TunnelType = "tcp"
	TunnelTypeUDP   TunnelType = "udp"
)

// TunnelMode: `standard`: one tunnel owns the address. `balanced`: tunnels of several agents share it. `private`, of type `tcp` or `udp`:
// it has no public address, and `public_url` is `adit://CLIENT/NAME`, which agents of the same relay visit.
type TunnelMode string

// Values of TunnelMode.
const (
	TunnelModeStandard TunnelMode = "standard"
	TunnelModeBalanced TunnelMode = "balanced"
	TunnelModePrivate  TunnelMode = "private"
)

// ProxyProtocol: Which PROXY protocol header tells the origin the visitor's address; empty for none.
type ProxyProtocol string

// Values of ProxyProtocol.
const (
	ProxyProtocolV1 ProxyProtocol = "v1"
	ProxyProtocolV2 ProxyProtocol = "v2"
)

// HeaderChanges: Header fields of an `http` or `https` tunnel, by name, that the relay changes in requests to the origin
// (`request_headers`) or in the origin's answers (`response_headers`): each is set to its value, in place of what is
// there, and one with an empty value is removed. In a change of a tunnel it is all of them; `{}` leaves none. At most
// 32, and 8 KiB of names and values. Values may be secrets; whoever may ask this API is shown them.
type HeaderChanges map[string]string

// TunnelPath: A path of an `http` or `https` tunnel that leads to a local service of its own. A request goes to the longest path
// that is the beginning of its own, segment by segment (`/api` has `/api` and `/api/users`, and not `/apis`); what no
// path has goes to the tunnel's local service.
type TunnelPath struct {
	// As `/api`: it begins with a slash, and is decoded, without a query.
	Path string `json:"path"`
	// The local service's address or host name.
	LocalIP     string      `json:"local_ip,omitempty"`
	LocalPort   int         `json:"local_port"`
	LocalScheme LocalScheme `json:"local_scheme,omitempty"`
	// The Host that this local service sees; empty: as for the tunnel.
	HostHeader string `json:"host_header,omitempty"`
	// The local service is asked without the path, which it is told in `X-Forwarded-Prefix`.
	Strip bool `json:"strip,omitempty"`
}

// LocalScheme: How the origin of an `http` or `https` tunnel is spoken to; empty is `http`, and `h2c` HTTP/2 without TLS.
type LocalScheme string

// Values of LocalScheme.
const (
	LocalSchemeHTTP  LocalScheme = "http"
	LocalSchemeHTTPS LocalScheme = "https"
	LocalSchemeH2c   LocalScheme = "h2c"
)

// TunnelCreate: What to publish, and how. Only `local_port` is required.
type TunnelCreate struct {
	Type TunnelType `json:"type,omitempty"`
	Mode TunnelMode `json:"mode,omitempty"`
	// The local service's address or host name.
	LocalIP   string `json:"local_ip,omitempty"`
	LocalPort int    `json:"local_port"`
	// A full name that the client may use, or one label under the relay's domain; without it the relay gives one. Of mode `private` one label, which this client has once. With `*.` before either, all names of one label more, which are nobody's by themselves: `public_url` then has the `*.` too, and is no page.
	Domain string `json:"domain,omitempty"`
	// For people.
	Name        string      `json:"name,omitempty"`
	LocalScheme LocalScheme `json:"local_scheme,omitempty"`
	// Public port of `tcp` and `udp`; 0 lets the relay give one.
	RemotePort int `json:"remote_port,omitempty"`
	// The Host that the origin sees; empty keeps the visitor's.
	HostHeader      string        `json:"host_header,omitempty"`
	RequestHeaders  HeaderChanges `json:"request_headers,omitempty"`
	ResponseHeaders HeaderChanges `json:"response_headers,omitempty"`
	// The paths that lead to local services of their own, in any order.
	Paths []TunnelPath `json:"paths,omitempty"`
	// Of mode `private`: the clients of the relay, by name, that may visit the tunnel beside those with the same token; `*` is all of them.
	Visitors      []string      `json:"visitors,omitempty"`
	ProxyProtocol ProxyProtocol `json:"proxy_protocol,omitempty"`
	// Show what passes in the inspector.
	Inspect *bool `json:"inspect,omitempty"`
	// Gone when the daemon ends.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Who is let in from the first visitor on, where the relay's operator lets this client say so; otherwise the tunnel is
	// refused. 32 KiB at most. The daemon keeps it, passwords hashed, and brings it again where the relay has none any
	// more. Later changes are `setTunnelPolicy`'s.
	Policy any `json:"policy,omitempty"`
	// Of an `ephemeral` one: gone as well once nobody has held it for 15 s, see `holdTunnel`.
	Held bool `json:"held,omitempty"`
}

// TunnelUpdate: The fields to change; what is left out stays.
type TunnelUpdate struct {
	Type      *TunnelType `json:"type,omitempty"`
	Mode      *TunnelMode `json:"mode,omitempty"`
	LocalIP   *string     `json:"local_ip,omitempty"`
	LocalPort *int        `json:"local_port,omitempty"`
	// As of TunnelCreate. Empty: a name that was asked for is given back, and the relay gives another.
	Domain          *string        `json:"domain,omitempty"`
	Name            *string        `json:"name,omitempty"`
	LocalScheme     *LocalScheme   `json:"local_scheme,omitempty"`
	RemotePort      *int           `json:"remote_port,omitempty"`
	HostHeader      *string        `json:"host_header,omitempty"`
	RequestHeaders  *HeaderChanges `json:"request_headers,omitempty"`
	ResponseHeaders *HeaderChanges `json:"response_headers,omitempty"`
	// All of them; an empty list leaves none.
	Paths *[]TunnelPath `json:"paths,omitempty"`
	// All of them; an empty list leaves only those with the same token.
	Visitors      *[]string      `json:"visitors,omitempty"`
	ProxyProtocol *ProxyProtocol `json:"proxy_protocol,omitempty"`
	Inspect       *bool          `json:"inspect,omitempty"`
}

// Tunnel: A declared mapping; it survives restarts.
type Tunnel struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Type        TunnelType  `json:"type"`
	Mode        TunnelMode  `json:"mode"`
	LocalIP     string      `json:"local_ip"`
	LocalPort   int         `json:"local_port"`
	LocalScheme LocalScheme `json:"local_scheme"`
	// As asked for, or as the relay gave it.
	Domain string `json:"domain"`
	// As asked for, or as the relay gave it; 0 unless `tcp` or `udp`.
	RemotePort      int           `json:"remote_port"`
	HostHeader      string        `json:"host_header"`
	RequestHeaders  HeaderChanges `json:"request_headers"`
	ResponseHeaders HeaderChanges `json:"response_headers"`
	// Longest first.
	Paths []TunnelPath `json:"paths"`
	// Of mode `private`: who may visit it, beside clients with the same token.
	Visitors      []string      `json:"visitors"`
	ProxyProtocol ProxyProtocol `json:"proxy_protocol"`
	Inspect       bool          `json:"inspect"`
	Ephemeral     bool          `json:"ephemeral"`
	// From `adit.toml`; not to be changed here.
	Declared bool `json:"declared"`
	// Where visitors reach it; empty until the relay gave one.
	PublicURL string      `json:"public_url"`
	State     TunnelState `json:"state"`
	// Why it is `failed`; otherwise empty.
	Error     string    `json:"error"`
	CreatedAt time.Time `json:"created_at"`
}

// Visit: An address on this machine whose connections, or packets, are led to a private tunnel.
type Visit struct {
	// As `nas/ssh`: the client whose it is, and its name.
	Tunnel string      `json:"tunnel"`
	Type   PrivateType `json:"type"`
	// Where connections or packets are taken.
	Listen string     `json:"listen"`
	State  VisitState `json:"state"`
	// Why it is `failed`, or why the newest connection was not led on; otherwise empty.
	Error       string      `json:"error"`
	Connections Connections `json:"connections"`
	Bytes       Bytes       `json:"bytes"`
}

// Invitation: A private tunnel that runs and lets this agent in.
type Invitation struct {
	// As `nas/ssh`: the client whose it is, and its name.
	Tunnel string      `json:"tunnel"`
	Type   PrivateType `json:"type"`
}

// PrivateType: The type of a private tunnel.
type PrivateType string

// Values of PrivateType.
const (
	PrivateTypeTCP PrivateType = "tcp"
	PrivateTypeUDP PrivateType = "udp"
)

// VisitState: `failed`: the address cannot be listened on now; that is tried again.
type VisitState string

// Values of VisitState.
const (
	VisitStateListening VisitState = "listening"
	VisitStateFailed    VisitState = "failed"
)

// TunnelState: `waiting`: no session now; it comes back by itself. `failed`: `error` says why.
type TunnelState string

// Values of TunnelState.
const (
	TunnelStateStarting TunnelState = "starting"
	TunnelStateRunning  TunnelState = "running"
	TunnelStateWaiting  TunnelState = "waiting"
	TunnelStateStopped  TunnelState = "stopped"
	TunnelStateFailed   TunnelState = "failed"
)

// Policy: Who is let in: `deny`, `allow`, `deny_countries`, `allow_countries`, `unknown_country`, `hours`, `connections`,
// `connections_per_address`, `rate`, `burst`, `bandwidth`, `max_body`, `basic_auth`, `sign_in`,
// `client_certificates`, `webhooks`, `shadow`.
type Policy struct {
}

// TunnelPolicy: Who is let in to a tunnel.
type TunnelPolicy struct {
	// A Policy, without passwords and secrets; {} lets everybody in.
	Policy map[string]any `json:"policy"`
	// The relay's operator lets this client set it, and adit.toml does not say it.
	Editable bool `json:"editable"`
	// operator, or this client's name; empty if there is none.
	SetBy string `json:"set_by"`
	// When it was set; null if there is none.
	ChangedAt *time.Time `json:"changed_at"`
	// adit.toml says who is let in, and is where to change it.
	Declared bool `json:"declared"`
	// Names of the relay's identity providers that visitors can sign in with.
	SignInProviders []string `json:"sign_in_providers,omitempty"`
	// Providers whose webhooks the relay can verify.
	WebhookProviders []string `json:"webhook_providers,omitempty"`
	// The relay can let visitors in by their certificates.
	ClientCertificates bool `json:"client_certificates,omitempty"`
}

// TunnelEvent: A tunnel came, changed or went.
type TunnelEvent struct {
	Action string `json:"action"`
	Tunnel Tunnel `json:"tunnel"`
}

// EndpointEvent: An endpoint came, changed or went.
type EndpointEvent struct {
	Action   string   `json:"action"`
	Endpoint Endpoint `json:"endpoint"`
}

// ClearedEvent: All inspected requests and flows were forgotten: load the list anew.
type ClearedEvent struct {
	// How many.
	Requests int `json:"requests"`
}

// MissedEvent: Events between are no longer held: load the lists anew. Its id is that of the last event lost.
type MissedEvent struct {
	// How many.
	Missed int64 `json:"missed"`
	// The id is of an earlier run of the daemon; `missed` then does not count that run's.
	Restarted bool `json:"restarted,omitempty"`
}

// RequestSummary: One line of the inspector's list.
type RequestSummary struct {
	ID string `json:"id"`
	// `flow`: one connection of a `tcp` or `tls` tunnel, or one flow of `udp`.
	Kind       string `json:"kind"`
	TunnelID   string `json:"tunnel_id"`
	TunnelName string `json:"tunnel_name"`
	// The tunnel's type.
	Type string `json:"type"`
	// When it began.
	Time time.Time `json:"time"`
	// Address and port; empty for a flow of `udp`, whose datagrams do not tell the daemon.
	Visitor string `json:"visitor"`
	// Of a flow to a tunnel of mode `private`: the client of the relay that visits.
	Client string `json:"client,omitempty"`
	// `open` while bytes may still come.
	State          string  `json:"state"`
	DurationMillis float64 `json:"duration_ms"`
	Method         string  `json:"method,omitempty"`
	Host           string  `json:"host,omitempty"`
	// With the query, as the local service is asked for it.
	Path string `json:"path,omitempty"`
	// The tunnel's path that led it to a local service of its own.
	TunnelPath string `json:"tunnel_path,omitempty"`
	// HTTP status of the answer; of the relay's, where the local service did not take the visitor.
	Status int `json:"status,omitempty"`
	// Of the answer.
	ContentType string `json:"content_type,omitempty"`
	// From the visitor.
	BytesIn int64 `json:"bytes_in"`
	// To the visitor.
	BytesOut int64 `json:"bytes_out"`
	// Why it failed.
	Error string `json:"error,omitempty"`
	// The request that this one repeats.
	ReplayOf string `json:"replay_of,omitempty"`
	// It came from an HTTP Archive.
	Imported bool `json:"imported,omitempty"`
}

// Header: is described in openapi.yaml.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// The value is hidden; ask with `reveal=true`.
	Redacted bool `json:"redacted,omitempty"`
}

// Body: What was kept of a body, decompressed for viewing.
type Body struct {
	// Bytes that passed.
	Size int64 `json:"size"`
	// The body, if it is text.
	Text string `json:"text,omitempty"`
	// The body, if it is not text.
	Base64 string `json:"base64,omitempty"`
	// The Content-Encoding that was undone.
	Encoding string `json:"encoding,omitempty"`
	// More passed than was kept.
	Truncated bool `json:"truncated,omitempty"`
}

// Message: A request or an answer.
type Message struct {
	// Request line or status line.
	Line  string `json:"line"`
	Proto string `json:"proto"`
	// In their order. The trailers of an answer by HTTP/2 follow them.
	Headers []Header `json:"headers"`
	Body    Body     `json:"body"`
}

// SocketMessage: One message of a WebSocket, or its end.
type SocketMessage struct {
	From string `json:"from"`
	// When it began.
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	// Bytes that passed, without framing.
	Size int64 `json:"size"`
	// The message, if it is text, decompressed. Of `close` the code and the reason.
	Text string `json:"text,omitempty"`
	// The message, if it is not text.
	Base64 string `json:"base64,omitempty"`
	// More passed than was kept.
	Truncated bool `json:"truncated,omitempty"`
	// It was compressed, and what it refers to was not kept.
	Unread bool `json:"unread,omitempty"`
}

// RequestDetail: One request in full. Messages are missing from flows.
type RequestDetail struct {
	ID string `json:"id"`
	// `flow`: one connection of a `tcp` or `tls` tunnel, or one flow of `udp`.
	Kind       string `json:"kind"`
	TunnelID   string `json:"tunnel_id"`
	TunnelName string `json:"tunnel_name"`
	// The tunnel's type.
	Type string `json:"type"`
	// When it began.
	Time time.Time `json:"time"`
	// Address and port; empty for a flow of `udp`, whose datagrams do not tell the daemon.
	Visitor string `json:"visitor"`
	// Of a flow to a tunnel of mode `private`: the client of the relay that visits.
	Client string `json:"client,omitempty"`
	// `open` while bytes may still come.
	State          string  `json:"state"`
	DurationMillis float64 `json:"duration_ms"`
	Method         string  `json:"method,omitempty"`
	Host           string  `json:"host,omitempty"`
	// With the query, as the local service is asked for it.
	Path string `json:"path,omitempty"`
	// The tunnel's path that led it to a local service of its own.
	TunnelPath string `json:"tunnel_path,omitempty"`
	// HTTP status of the answer; of the relay's, where the local service did not take the visitor.
	Status int `json:"status,omitempty"`
	// Of the answer.
	ContentType string `json:"content_type,omitempty"`
	// From the visitor.
	BytesIn int64 `json:"bytes_in"`
	// To the visitor.
	BytesOut int64 `json:"bytes_out"`
	// Why it failed.
	Error string `json:"error,omitempty"`
	// The request that this one repeats.
	ReplayOf string `json:"replay_of,omitempty"`
	// It came from an HTTP Archive.
	Imported bool     `json:"imported,omitempty"`
	Request  *Message `json:"request,omitempty"`
	Response *Message `json:"response,omitempty"`
	// The newest messages of a WebSocket, oldest first: at most 1,000, and 1 MiB.
	Messages []SocketMessage `json:"messages,omitempty"`
	// How many messages are not among them.
	MessagesMissed int `json:"messages_missed,omitempty"`
	// A command that repeats the request, quoted for a POSIX shell.
	Curl string `json:"curl,omitempty"`
	// The request's public address.
	URL string `json:"url,omitempty"`
}

// Replay: What to change before sending again; what is left out stays.
type Replay struct {
	Method *string `json:"method,omitempty"`
	// With the query.
	Path *string `json:"path,omitempty"`
	// Replace all headers.
	Headers []Header `json:"headers,omitempty"`
	// Replaces the body.
	Body *string `json:"body,omitempty"`
	// Replaces the body with what is not text.
	BodyBase64 *string `json:"body_base64,omitempty"`
}

// HARImport: is described in openapi.yaml.
type HARImport struct {
	// How many entries were added.
	Added int `json:"added"`
}

// LogLevel: is described in openapi.yaml.
type LogLevel string

// Values of LogLevel.
const (
	LogLevelDebug LogLevel = "debug"
	LogLevelInfo  LogLevel = "info"
	LogLevelWarn  LogLevel = "warn"
	LogLevelError LogLevel = "error"
)

// LogEntry: One line of the daemon's log.
type LogEntry struct {
	Time    time.Time `json:"time"`
	Level   LogLevel  `json:"level"`
	Message string    `json:"message"`
	// What belongs to the message; keys of groups are joined by dots.
	Fields map[string]any `json:"fields,omitempty"`
}

// Check: One thing that was tried.
type Check struct {
	// Stable name.
	Name   string `json:"name"`
	Status string `json:"status"`
	// What was tried.
	Tried string `json:"tried"`
	// What it showed.
	Result string `json:"result"`
	// What to do; empty if it is ok.
	Advice string `json:"advice"`
}

// Throughput: Bytes a second.
type Throughput struct {
	// From the relay to this machine; 0 if not measured.
	In int64 `json:"in"`
	// From this machine to the relay; 0 if not measured.
	Out int64 `json:"out"`
}

// Speed: How fast the way between this machine and the relay is over one transport.
type Speed struct {
	Transport string `json:"transport"`
	// The session runs over it.
	InUse bool `json:"in_use"`
	// Round trip to the relay; 0 if not measured.
	RTTMillis      float64    `json:"rtt_ms"`
	BytesPerSecond Throughput `json:"bytes_per_second"`
	// Why something was not measured; empty if all was.
	Error string `json:"error"`
}

// SpeedReport: is described in openapi.yaml.
type SpeedReport struct {
	Items []Speed `json:"items"`
	// What to do; empty if the transport in use is right.
	Advice string `json:"advice"`
}

// LoginLink: is described in openapi.yaml.
type LoginLink struct {
	// Open it in a browser of this machine. A secret until used.
	URL string `json:"url"`
	// `null` for a plain address, which does not expire.
	ExpiresAt *time.Time `json:"expires_at"`
}

// SessionCreate: is described in openapi.yaml.
type SessionCreate struct {
	// From a login link's fragment.
	Code string `json:"code"`
}
