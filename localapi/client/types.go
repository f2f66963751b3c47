// Code generated from openapi.yaml by internal/gen. DO NOT EDIT.

package client

import "time"

// Health: The daemon answers.
type Health struct {
	Status string `json:"status"`
	// The daemon's version.
	Version string `json:"version"`
}

// ErrorCode: What went wrong, for programs. New codes may be added.
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

// AuthConfigure: The token to use.
type AuthConfigure struct {
	// From `adit relay client add`, or the relay's console. A secret.
	AuthToken string `json:"auth_token"`
	// The id or name of the relay's client that the token must belong to; a token of another client is refused.
	ClientID string `json:"client_id,omitempty"`
}

// AuthStatus: The current token, but never its secret.
type AuthStatus struct {
	// A token is stored.
	Configured bool `json:"configured"`
	// The relay has accepted it and there is a session.
	Authenticated bool `json:"authenticated"`
	// The one that was given; otherwise the relay's id for this client, once the relay has accepted the token in this run of the daemon.
	ClientID string `json:"client_id"`
	// The relay's address; empty without a token.
	Relay string `json:"relay"`
	// Distinguishes tokens without revealing them.
	TokenHint    string     `json:"token_hint"`
	ConfiguredAt *time.Time `json:"configured_at"`
	// Why the relay did not accept it; empty if there is no problem.
	LastError string `json:"last_error"`
}

// Bytes: Visitors' payload since the daemon started.
type Bytes struct {
	// From visitors to the origin.
	In int64 `json:"in"`
	// From the origin to visitors.
	Out int64 `json:"out"`
}

// Status: The state of the agent.
type Status struct {
	// A token is stored.
	Configured bool `json:"configured"`
	// The relay answered within the last keep-alive interval.
	Connected bool `json:"connected"`
	// `unconfigured`: no token yet. `connecting`: no session since the daemon started or the token changed.
	// `connected`: see `connected`. `reconnecting`: the session is lost, or not known to be alive.
	// `paused`: until resumed. `rejected`: the relay refuses the token; `last_error` says why and
	// what to do. The agent does not try again unless the relay asks for it, such as for an expired client.
	State string `json:"state"`
	// The relay's address; empty without a token.
	Relay string `json:"relay"`
	// The relay's name for this client; absent without a session.
	ClientName string `json:"client_name,omitempty"`
	// The transport of the session; empty without one.
	Transport string `json:"transport"`
	// Round trip to the relay; 0 if not measured.
	RTTMillis      float64    `json:"rtt_ms"`
	ConnectedSince *time.Time `json:"connected_since"`
	// Why there is no session; empty if there is no problem.
	LastError string `json:"last_error"`
	// The number of running endpoints.
	EndpointCount int `json:"endpoint_count"`
	// The daemon's version.
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// The daemon's process ID.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	// The command that the daemon is part of and ends with; absent if it runs on its own.
	RunBy string `json:"run_by,omitempty"`
	Bytes Bytes  `json:"bytes"`
}

// Setting: One current setting.
type Setting struct {
	// The key as in `adit.toml`, with its table.
	Key string `json:"key"`
	// The value; only a hint if it is a secret.
	Value any `json:"value"`
	// Where the value comes from.
	Source string `json:"source"`
	// The value is only a hint.
	Secret bool `json:"secret,omitempty"`
}

// ConfigError: An error in the file. The file's tunnels change only once it is corrected; if the daemon started with it, none of them runs until then.
type ConfigError struct {
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Key     string `json:"key,omitempty"`
}

// Config: The current settings.
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

// Endpoint: The public side of a running tunnel.
type Endpoint struct {
	ID        string     `json:"id"`
	TunnelID  string     `json:"tunnel_id"`
	Name      string     `json:"name"`
	Type      TunnelType `json:"type"`
	Mode      TunnelMode `json:"mode"`
	PublicURL string     `json:"public_url"`
	// The origin's address.
	Local string `json:"local"`
	// `running`, or `waiting` while there is no session; in an event with `down`, the tunnel's own state.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Why the last visitor could not reach the local service, for example because nothing listens there; empty once the service can be reached again, which the daemon checks by itself.
	Error       string      `json:"error"`
	Connections Connections `json:"connections"`
	Bytes       Bytes       `json:"bytes"`
}

// TunnelType: `tls` is routed by its server name; the relay never decrypts it.
type TunnelType string

// Values of TunnelType.
const (
	TunnelTypeHTTP  TunnelType = "http"
	TunnelTypeHTTPS TunnelType = "https"
	TunnelTypeTLS   TunnelType = "tls"
	TunnelTypeTCP   TunnelType = "tcp"
	TunnelTypeUDP   TunnelType = "udp"
)

// TunnelMode: `standard`: only this tunnel uses the address. `balanced`: tunnels of several agents share it. `private`, of type `tcp` or `udp`:
// there is no public address, and `public_url` is `adit://CLIENT/NAME`, which agents of the same relay can visit.
type TunnelMode string

// Values of TunnelMode.
const (
	TunnelModeStandard TunnelMode = "standard"
	TunnelModeBalanced TunnelMode = "balanced"
	TunnelModePrivate  TunnelMode = "private"
)

// ProxyProtocol: The PROXY protocol version that sends the origin the visitor's address; empty for none.
type ProxyProtocol string

// Values of ProxyProtocol.
const (
	ProxyProtocolV1 ProxyProtocol = "v1"
	ProxyProtocolV2 ProxyProtocol = "v2"
)

// HeaderChanges: Header fields of an `http` or `https` tunnel, by name, that the relay changes in requests to the origin
// (`request_headers`) or in the origin's responses (`response_headers`). Each is set to its value and replaces any
// existing one; a field with an empty value is removed. An update replaces all of them; `{}` removes them all. The limits
// are 32 fields and 8 KiB of names and values. Values may be secrets; anyone who may use this API can see them.
type HeaderChanges map[string]string

// TunnelPath: A path of an `http` or `https` tunnel that leads to a different local service. A request goes to the longest path that
// its own path begins with, compared segment by segment (`/api` matches `/api` and `/api/users`, but not `/apis`). All
// other requests go to the tunnel's local service.
type TunnelPath struct {
	// Such as `/api`. It begins with a slash, is decoded, and has no query.
	Path string `json:"path"`
	// The local service's address or host name.
	LocalIP     string      `json:"local_ip,omitempty"`
	LocalPort   int         `json:"local_port"`
	LocalScheme LocalScheme `json:"local_scheme,omitempty"`
	// The Host header that this local service receives; empty: the same as for the tunnel.
	HostHeader string `json:"host_header,omitempty"`
	// Remove the path from requests to the local service, and send it in `X-Forwarded-Prefix`.
	Strip bool `json:"strip,omitempty"`
}

// LocalScheme: The protocol of the origin of an `http` or `https` tunnel; empty means `http`, and `h2c` is HTTP/2 without TLS.
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
	// A full name that the client may use, or one label under the relay's domain; if empty, the relay assigns one. In mode `private`, one label that is unique for this client. With `*.` before either, the tunnel gets every name with exactly one more label, unless a tunnel has that name itself; `public_url` then contains the `*.`, too, and cannot be opened as a page.
	Domain string `json:"domain,omitempty"`
	// A name to show in lists.
	Name        string      `json:"name,omitempty"`
	LocalScheme LocalScheme `json:"local_scheme,omitempty"`
	// Public port of `tcp` and `udp`; with 0, the relay assigns one.
	RemotePort int `json:"remote_port,omitempty"`
	// The Host header that the origin receives; empty keeps the visitor's.
	HostHeader      string        `json:"host_header,omitempty"`
	RequestHeaders  HeaderChanges `json:"request_headers,omitempty"`
	ResponseHeaders HeaderChanges `json:"response_headers,omitempty"`
	// The paths that lead to different local services, in any order.
	Paths []TunnelPath `json:"paths,omitempty"`
	// In mode `private`: the clients of the relay, by name, that may visit the tunnel in addition to those with the same token; `*` allows all.
	Visitors      []string      `json:"visitors,omitempty"`
	ProxyProtocol ProxyProtocol `json:"proxy_protocol,omitempty"`
	// Show the traffic in the inspector.
	Inspect *bool `json:"inspect,omitempty"`
	// Deleted when the daemon ends.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Who may visit, from the first visitor on. If the relay's operator does not allow this client to set this, the tunnel is
	// refused. At most 32 KiB. The daemon stores the policy with hashed passwords, and sends it again if the relay no longer
	// has one. To change it later, use `setTunnelPolicy`.
	Policy any `json:"policy,omitempty"`
	// For an `ephemeral` tunnel: also deleted once nobody has held it for 15 s; see `holdTunnel`.
	Held bool `json:"held,omitempty"`
}

// TunnelUpdate: The fields to change; fields that are left out stay unchanged.
type TunnelUpdate struct {
	Type      *TunnelType `json:"type,omitempty"`
	Mode      *TunnelMode `json:"mode,omitempty"`
	LocalIP   *string     `json:"local_ip,omitempty"`
	LocalPort *int        `json:"local_port,omitempty"`
	// As in TunnelCreate. If empty, a name that was requested is given back, and the relay assigns another one.
	Domain          *string        `json:"domain,omitempty"`
	Name            *string        `json:"name,omitempty"`
	LocalScheme     *LocalScheme   `json:"local_scheme,omitempty"`
	RemotePort      *int           `json:"remote_port,omitempty"`
	HostHeader      *string        `json:"host_header,omitempty"`
	RequestHeaders  *HeaderChanges `json:"request_headers,omitempty"`
	ResponseHeaders *HeaderChanges `json:"response_headers,omitempty"`
	// Replaces all of them; an empty list removes them all.
	Paths *[]TunnelPath `json:"paths,omitempty"`
	// Replaces all of them; an empty list leaves only clients with the same token.
	Visitors      *[]string      `json:"visitors,omitempty"`
	ProxyProtocol *ProxyProtocol `json:"proxy_protocol,omitempty"`
	Inspect       *bool          `json:"inspect,omitempty"`
}

// Tunnel: The definition of a tunnel; it survives restarts.
type Tunnel struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Type        TunnelType  `json:"type"`
	Mode        TunnelMode  `json:"mode"`
	LocalIP     string      `json:"local_ip"`
	LocalPort   int         `json:"local_port"`
	LocalScheme LocalScheme `json:"local_scheme"`
	// As requested, or as assigned by the relay.
	Domain string `json:"domain"`
	// As requested, or as assigned by the relay; 0 unless `tcp` or `udp`.
	RemotePort      int           `json:"remote_port"`
	HostHeader      string        `json:"host_header"`
	RequestHeaders  HeaderChanges `json:"request_headers"`
	ResponseHeaders HeaderChanges `json:"response_headers"`
	// Longest first.
	Paths []TunnelPath `json:"paths"`
	// In mode `private`: who may visit it, in addition to clients with the same token.
	Visitors      []string      `json:"visitors"`
	ProxyProtocol ProxyProtocol `json:"proxy_protocol"`
	Inspect       bool          `json:"inspect"`
	Ephemeral     bool          `json:"ephemeral"`
	// Declared in `adit.toml`; it cannot be changed here.
	Declared bool `json:"declared"`
	// The address for visitors; empty until the relay has assigned one.
	PublicURL string      `json:"public_url"`
	State     TunnelState `json:"state"`
	// Why it is `failed`; otherwise empty.
	Error     string    `json:"error"`
	CreatedAt time.Time `json:"created_at"`
}

// Visit: An address on this machine. Connections or packets to it are forwarded to a private tunnel.
type Visit struct {
	// Such as `nas/ssh`: the client that owns the tunnel, and the tunnel's name.
	Tunnel string      `json:"tunnel"`
	Type   PrivateType `json:"type"`
	// The address that accepts connections or packets.
	Listen string     `json:"listen"`
	State  VisitState `json:"state"`
	// Why it is `failed`, or why the last connection could not be forwarded; otherwise empty.
	Error       string      `json:"error"`
	Connections Connections `json:"connections"`
	Bytes       Bytes       `json:"bytes"`
}

// Invitation: A running private tunnel that this agent may visit.
type Invitation struct {
	// Such as `nas/ssh`: the client that owns the tunnel, and the tunnel's name.
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

// VisitState: `failed`: the daemon cannot listen on the address now, and keeps trying.
type VisitState string

// Values of VisitState.
const (
	VisitStateListening VisitState = "listening"
	VisitStateFailed    VisitState = "failed"
)

// TunnelState: `waiting`: there is no session now; the tunnel comes back by itself. `failed`: `error` says why.
type TunnelState string

// Values of TunnelState.
const (
	TunnelStateStarting TunnelState = "starting"
	TunnelStateRunning  TunnelState = "running"
	TunnelStateWaiting  TunnelState = "waiting"
	TunnelStateStopped  TunnelState = "stopped"
	TunnelStateFailed   TunnelState = "failed"
)

// Policy: Who may visit: `deny`, `allow`, `deny_countries`, `allow_countries`, `unknown_country`, `hours`, `connections`,
// `connections_per_address`, `rate`, `burst`, `bandwidth`, `max_body`, `basic_auth`, `sign_in`,
// `client_certificates`, `webhooks`, `shadow`.
type Policy struct {
}

// TunnelPolicy: Who may visit a tunnel.
type TunnelPolicy struct {
	// A Policy, without passwords and secrets; {} allows everyone.
	Policy map[string]any `json:"policy"`
	// The relay's operator allows this client to set it, and adit.toml does not declare it.
	Editable bool `json:"editable"`
	// operator, or this client's name; empty if there is no policy.
	SetBy string `json:"set_by"`
	// When it was set; null if there is no policy.
	ChangedAt *time.Time `json:"changed_at"`
	// adit.toml declares who may visit, and must be edited to change it.
	Declared bool `json:"declared"`
	// Names of the relay's identity providers that visitors can sign in with.
	SignInProviders []string `json:"sign_in_providers,omitempty"`
	// Providers whose webhooks the relay can verify.
	WebhookProviders []string `json:"webhook_providers,omitempty"`
	// The relay can allow visitors by their certificates.
	ClientCertificates bool `json:"client_certificates,omitempty"`
}

// TunnelEvent: A tunnel was created, changed or deleted.
type TunnelEvent struct {
	Action string `json:"action"`
	Tunnel Tunnel `json:"tunnel"`
}

// EndpointEvent: An endpoint came up, changed or went down.
type EndpointEvent struct {
	Action   string   `json:"action"`
	Endpoint Endpoint `json:"endpoint"`
}

// ClearedEvent: All inspected requests and flows were deleted: reload the list.
type ClearedEvent struct {
	// The number deleted.
	Requests int `json:"requests"`
}

// MissedEvent: Events in between are no longer available: reload the lists. The id of this event is that of the last event lost.
type MissedEvent struct {
	// The number of events lost.
	Missed int64 `json:"missed"`
	// The id is from an earlier run of the daemon; `missed` then does not include events of that run.
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
	// Address and port; empty for a `udp` flow, because its datagrams do not tell the daemon the visitor's address.
	Visitor string `json:"visitor"`
	// For a flow to a tunnel of mode `private`: the client of the relay that visits.
	Client string `json:"client,omitempty"`
	// `open` while bytes may still come.
	State          string  `json:"state"`
	DurationMillis float64 `json:"duration_ms"`
	Method         string  `json:"method,omitempty"`
	Host           string  `json:"host,omitempty"`
	// With the query, as sent to the local service.
	Path string `json:"path,omitempty"`
	// The tunnel's path that sent it to a different local service.
	TunnelPath string `json:"tunnel_path,omitempty"`
	// HTTP status of the response; the relay's own response if the local service did not accept the visitor.
	Status int `json:"status,omitempty"`
	// Content type of the response.
	ContentType string `json:"content_type,omitempty"`
	// Bytes from the visitor.
	BytesIn int64 `json:"bytes_in"`
	// Bytes to the visitor.
	BytesOut int64 `json:"bytes_out"`
	// Why it failed.
	Error string `json:"error,omitempty"`
	// The request that this one repeats.
	ReplayOf string `json:"replay_of,omitempty"`
	// It was imported from an HTTP Archive.
	Imported bool `json:"imported,omitempty"`
}

// Header: is described in openapi.yaml.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// The value is hidden; request it with `reveal=true`.
	Redacted bool `json:"redacted,omitempty"`
}

// Body: The recorded part of a body, decompressed for viewing.
type Body struct {
	// Bytes transferred.
	Size int64 `json:"size"`
	// The body, if it is text.
	Text string `json:"text,omitempty"`
	// The body, if it is not text.
	Base64 string `json:"base64,omitempty"`
	// The Content-Encoding that was removed.
	Encoding string `json:"encoding,omitempty"`
	// More was transferred than recorded.
	Truncated bool `json:"truncated,omitempty"`
}

// Message: A request or a response.
type Message struct {
	// Request line or status line.
	Line  string `json:"line"`
	Proto string `json:"proto"`
	// In their original order, followed by the trailers of an HTTP/2 response.
	Headers []Header `json:"headers"`
	Body    Body     `json:"body"`
}

// SocketMessage: One WebSocket message, or the end of the WebSocket.
type SocketMessage struct {
	From string `json:"from"`
	// When it began.
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	// Bytes transferred, without framing.
	Size int64 `json:"size"`
	// The message, if it is text, decompressed. For `close`, the code and the reason.
	Text string `json:"text,omitempty"`
	// The message, if it is not text.
	Base64 string `json:"base64,omitempty"`
	// More was transferred than recorded.
	Truncated bool `json:"truncated,omitempty"`
	// The message was compressed, and data that it refers to was not recorded.
	Unread bool `json:"unread,omitempty"`
}

// RequestDetail: One request in full. Flows have no messages.
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
	// Address and port; empty for a `udp` flow, because its datagrams do not tell the daemon the visitor's address.
	Visitor string `json:"visitor"`
	// For a flow to a tunnel of mode `private`: the client of the relay that visits.
	Client string `json:"client,omitempty"`
	// `open` while bytes may still come.
	State          string  `json:"state"`
	DurationMillis float64 `json:"duration_ms"`
	Method         string  `json:"method,omitempty"`
	Host           string  `json:"host,omitempty"`
	// With the query, as sent to the local service.
	Path string `json:"path,omitempty"`
	// The tunnel's path that sent it to a different local service.
	TunnelPath string `json:"tunnel_path,omitempty"`
	// HTTP status of the response; the relay's own response if the local service did not accept the visitor.
	Status int `json:"status,omitempty"`
	// Content type of the response.
	ContentType string `json:"content_type,omitempty"`
	// Bytes from the visitor.
	BytesIn int64 `json:"bytes_in"`
	// Bytes to the visitor.
	BytesOut int64 `json:"bytes_out"`
	// Why it failed.
	Error string `json:"error,omitempty"`
	// The request that this one repeats.
	ReplayOf string `json:"replay_of,omitempty"`
	// It was imported from an HTTP Archive.
	Imported bool     `json:"imported,omitempty"`
	Request  *Message `json:"request,omitempty"`
	Response *Message `json:"response,omitempty"`
	// The newest messages of a WebSocket, oldest first: at most 1,000 messages and 1 MiB.
	Messages []SocketMessage `json:"messages,omitempty"`
	// The number of messages that are not included.
	MessagesMissed int `json:"messages_missed,omitempty"`
	// A command that repeats the request, quoted for a POSIX shell.
	Curl string `json:"curl,omitempty"`
	// The request's public address.
	URL string `json:"url,omitempty"`
}

// Replay: What to change before sending the request again; fields that are left out stay unchanged.
type Replay struct {
	Method *string `json:"method,omitempty"`
	// The path, with the query.
	Path *string `json:"path,omitempty"`
	// Replaces all headers.
	Headers []Header `json:"headers,omitempty"`
	// Replaces the body.
	Body *string `json:"body,omitempty"`
	// Replaces the body with one that is not text.
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
	// Attributes of the message; the keys of groups are joined by dots.
	Fields map[string]any `json:"fields,omitempty"`
}

// Check: One check of the diagnostics.
type Check struct {
	// Stable name of the check.
	Name   string `json:"name"`
	Status string `json:"status"`
	// What was tested.
	Tried string `json:"tried"`
	// What the test showed.
	Result string `json:"result"`
	// What to do; empty if the check is ok.
	Advice string `json:"advice"`
}

// Throughput: Bytes per second.
type Throughput struct {
	// From the relay to this machine; 0 if not measured.
	In int64 `json:"in"`
	// From this machine to the relay; 0 if not measured.
	Out int64 `json:"out"`
}

// Speed: The speed between this machine and the relay over one transport.
type Speed struct {
	Transport string `json:"transport"`
	// The session uses this transport.
	InUse bool `json:"in_use"`
	// Round trip to the relay; 0 if not measured.
	RTTMillis      float64    `json:"rtt_ms"`
	BytesPerSecond Throughput `json:"bytes_per_second"`
	// Why something was not measured; empty if everything was.
	Error string `json:"error"`
}

// SpeedReport: is described in openapi.yaml.
type SpeedReport struct {
	Items []Speed `json:"items"`
	// What to do; empty if the current transport is the right one.
	Advice string `json:"advice"`
}

// LoginLink: is described in openapi.yaml.
type LoginLink struct {
	// Open it in a browser on this machine. A secret until it is used.
	URL string `json:"url"`
	// `null` for a plain address, which does not expire.
	ExpiresAt *time.Time `json:"expires_at"`
}

// SessionCreate: is described in openapi.yaml.
type SessionCreate struct {
	// The code from a login link's fragment.
	Code string `json:"code"`
}
