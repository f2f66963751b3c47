// Package wire defines what an agent and a relay say to each other: the messages of the
// control plane, the headers of streams and datagrams, and the auth token. It is pure: it does
// no I/O, and it checks every limit before allocating memory.
//
// The control plane is HTTP/1.1 over streams that the agent opens; the relay answers. Streams
// that the relay opens carry visitors and begin with a PROXY protocol v2 header (see Preface).
// Datagrams carry UDP visitors (see Flow).
package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Protocol is the version of the control plane, sent in Hello.
const Protocol = 1

// Paths of the control plane.
const (
	PathHello  = "/v1/hello"   // POST Hello, answers Welcome; the first request of a session
	PathClaims = "/v1/claims/" // PUT Claim at /v1/claims/{key}, answers Grant; DELETE gives it back: with ?keep=1 only the endpoint ends and the client keeps the name, with ?move=1 the tunnel is about to get another name
	PathEvents = "/v1/events"  // GET, streams Events as NDJSON until the session ends; leaves out EventAccess if ParamAccess is AccessNone
	PathErrors = "/v1/errors"  // POST []AgentError
	PathSpeed  = "/v1/speed"   // GET sends bytes for a moment; POST receives bytes and answers Speed. Needs FeatureSpeed
	PathPolicy = "/v1/policy/" // GET answers the Policy of a claim at /v1/policy/{key}; PUT sets a Policy's Document, if the operator allows the client to. Answers have an ETag, which a PUT may name in If-Match
)

// ParamAccess is a query parameter of PathEvents. A busy tunnel has many access events, so an
// agent that does not read them says AccessNone.
const (
	ParamAccess = "access"
	AccessNone  = "none"
)

// Hello authenticates the agent. It must be the first request of a session; any request before
// it, and a second Hello, are refused.
type Hello struct {
	Protocol int    `json:"protocol"`
	Secret   []byte `json:"secret"`              // from the auth token
	ClientID string `json:"client_id,omitempty"` // the client that the user bound the agent to, if any
	Instance string `json:"instance"`            // random, made once per state folder: tells apart two agents with the same token
	Version  string `json:"version"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Hostname string `json:"hostname,omitempty"`
	// Beside is the ID of the node that holds the agent's other session. That node refuses
	// this session with CodeHere.
	Beside string `json:"beside,omitempty"`
	// Trial marks a session that is only for PathSpeed. It lasts 20 seconds, serves no
	// tunnels, and replaces no other session.
	Trial bool `json:"trial,omitempty"`
}

// Speed is the answer to a POST to PathSpeed.
type Speed struct {
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Node is the address at which one node of the relay listens for agents.
type Node struct {
	ID      string `json:"id"`
	Address string `json:"address"` // host:port
}

// Welcome is the answer to an accepted Hello.
type Welcome struct {
	SessionID  string `json:"session_id"`
	ClientID   string `json:"client_id"`
	ClientName string `json:"client_name"`
	Domain     string `json:"domain"`
	Node       string `json:"node"`
	Version    string `json:"version"`
	// Addresses are the addresses (host:port) at which the relay's nodes listen for agents,
	// best first. If empty, the address in the token stays in use. The authority is always the
	// token's.
	Addresses []string `json:"addresses,omitempty"`
	// NodeID is the ID of the node that answers. Nodes are all nodes, in the order in which
	// this agent should try them for its other session; it is empty if there is only one. An
	// agent keeps sessions with two nodes.
	NodeID string `json:"node_id,omitempty"`
	Nodes  []Node `json:"nodes,omitempty"`
	// Features are the things this relay supports that older relays ignore.
	Features []string `json:"features,omitempty"`
}

// Features of a relay.
const (
	FeatureHeaders = "headers" // it changes headers as a Claim asks
	FeaturePaths   = "paths"   // it routes the paths of a Claim to separate services
	// FeatureWildcards means that the Domain of a Claim may be a wildcard.
	FeatureWildcards = "wildcards"
	FeatureSpeed     = "speed"   // it has PathSpeed, and supports Hello.Trial
	FeaturePrivate   = "private" // it has ModePrivate and PathVisit
	// FeaturePrivateUDP means that a tunnel in ModePrivate may be of type udp.
	FeaturePrivateUDP = "private_udp"
	// FeatureInvitations means that the relay has PathInvitations.
	FeatureInvitations = "invitations"
	// FeaturePolicies means that the Policy of a Claim is in force before the first visitor is
	// served.
	FeaturePolicies = "policies"
	// FeaturePolicyHolds means that the relay supports Claim.PolicyHolds.
	FeaturePolicyHolds = "policy_holds"
)

// Tunnel types and modes.
const (
	TypeHTTP  = "http"
	TypeHTTPS = "https"
	TypeTLS   = "tls"
	TypeTCP   = "tcp"
	TypeUDP   = "udp"

	ModeStandard = "standard"
	ModeBalanced = "balanced"
	ModePrivate  = "private" // tcp and udp; see PathVisit
)

// Claim asks for a tunnel's public face. Repeating it with the same key changes the tunnel,
// which gets the same domain and port again if they are still free.
type Claim struct {
	Type       string `json:"type"`
	Mode       string `json:"mode"`
	Domain     string `json:"domain,omitempty"`      // full name or one label, or either after "*."; for a private tunnel, its name; empty: the relay chooses
	RemotePort int    `json:"remote_port,omitempty"` // tcp, udp; 0: the relay chooses
	Name       string `json:"name,omitempty"`
	HostHeader string `json:"host_header,omitempty"` // http, https: the edge rewrites Host to this for the origin
	// RequestHeaders and ResponseHeaders are the changes that the edge makes to requests and
	// to the origin's answers (http, https). They need FeatureHeaders.
	RequestHeaders  HeaderChanges `json:"request_headers,omitzero"`
	ResponseHeaders HeaderChanges `json:"response_headers,omitzero"`
	// Paths are served by separate services (http, https). Streams for them name the path in
	// their Preface. They need FeaturePaths.
	Paths []ClaimPath `json:"paths,omitempty"`
	// Visitors are the names of the clients, other than this one, that may visit a private
	// tunnel; AnyClient allows all. It needs FeaturePrivate.
	Visitors []string `json:"visitors,omitempty"`
	// Policy says who is let in, as a Policy's Document. If empty, the relay's existing policy
	// for the name or port applies. The policy is in force before the first visitor is let in.
	// An existing policy takes precedence over it, unless that is this client's own and
	// PolicyReplaces is set. It needs FeaturePolicies.
	Policy json.RawMessage `json:"policy,omitempty"`
	// PolicyReplaces says that the tunnel has not had this name or port before, so any policy
	// that it has belongs to another tunnel.
	PolicyReplaces bool `json:"policy_replaces,omitempty"`
	// PolicyHolds says that Policy is declared. It then replaces whatever this client has set
	// by other means for this name or port, or for PolicyOf. It needs FeaturePolicyHolds.
	PolicyHolds bool `json:"policy_holds,omitempty"`
	// PolicyOf is the name or port that the tunnel had before, such as shop.example.com or
	// tcp.20001. A policy that this client has set for it takes precedence over Policy, and
	// also applies to the new name or port if that has none.
	PolicyOf string `json:"policy_of,omitempty"`
	// Ephemeral claims are forgotten when the session ends; all others are kept for the
	// client.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Unshared makes each stream carry the requests of only one visitor (http, https). It is
	// needed if the origin is told who the visitor is in a PROXY header.
	Unshared bool `json:"unshared,omitempty"`
	// HTTP2 has the relay speak HTTP/2 to the origin, over raw streams, except for changes of
	// protocol (http, https). Without it, only gRPC uses HTTP/2.
	HTTP2 bool `json:"http2,omitempty"`
	// Scheme is the scheme of the URLs by which the origin knows itself (http, https). It is
	// empty for agents that predate this field; the relay then rewrites no URLs for the
	// origin.
	Scheme string `json:"scheme,omitempty"`
	// Port is the port that the origin listens on and may therefore name in its own URLs
	// (http, https). It is 0 for agents that predate this field.
	Port int `json:"port,omitempty"`
}

// ChangesHeaders reports whether the claim asks the edge to change header fields.
func (c *Claim) ChangesHeaders() bool {
	return !c.RequestHeaders.IsZero() || !c.ResponseHeaders.IsZero()
}

// Equal reports whether two claims ask for the same thing.
func (c Claim) Equal(o Claim) bool { return reflect.DeepEqual(c, o) }

// Grant is the answer to an accepted Claim: the endpoint is now served.
type Grant struct {
	EndpointID string `json:"endpoint_id"`
	Number     uint32 `json:"number"` // identifies the endpoint in Preface and Flow, within this session
	Domain     string `json:"domain,omitempty"`
	RemotePort int    `json:"remote_port,omitempty"`
	PublicURL  string `json:"public_url"`
}

// Event types.
const (
	EventDrain     = "drain"      // this relay is shutting down: connect again, to one of Addresses if there are any
	EventClaimLost = "claim_lost" // Key's endpoint was taken away, for Reason
	EventRevoked   = "revoked"    // the client was revoked or has expired; the session ends now
	EventMoved     = "moved"      // Addresses are the relay's addresses from now on
	EventAccess    = "access"     // one visitor's request or connection to one of the agent's tunnels
	EventScope     = "scope"      // the client's scope has changed: what was refused may be granted now
	EventNodes     = "nodes"      // Nodes are the relay's nodes from now on
	EventPing      = "ping"       // carries nothing; shows that the stream is alive
)

// Event is one line of the relay's event stream.
type Event struct {
	Type      string   `json:"type"`
	Key       string   `json:"key,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Nodes     []Node   `json:"nodes,omitempty"` // drain, nodes: as in Welcome
	Access    *Access  `json:"access,omitempty"`
	// RetryAfter has the meaning of Problem.RetryAfter (revoked).
	RetryAfter int `json:"retry_after,omitempty"`
}

// Access is one visitor's request (http, https) or connection, allowed or refused.
type Access struct {
	ID       string        `json:"id,omitempty"` // of a stored event
	Time     time.Time     `json:"time"`
	Node     string        `json:"node,omitempty"` // the node that the visitor came to
	Endpoint string        `json:"endpoint_id"`
	ClientID string        `json:"client_id,omitempty"`
	Key      string        `json:"key,omitempty"`
	Visitor  string        `json:"visitor"`           // address, without the port
	User     string        `json:"user,omitempty"`    // who the visitor is, if a policy asks
	Country  string        `json:"country,omitempty"` // such as DE or US-CA, if the relay knows it
	Method   string        `json:"method,omitempty"`
	Host     string        `json:"host,omitempty"`
	Path     string        `json:"path,omitempty"` // without the query
	Status   int           `json:"status,omitempty"`
	Refused  string        `json:"refused,omitempty"` // the rule that refused it
	BytesIn  int64         `json:"bytes_in"`
	BytesOut int64         `json:"bytes_out"`
	Duration time.Duration `json:"duration_ns"`
}

// MaxJSON returns an upper bound on the event's length as JSON. Callers use it to limit the
// size of batches.
func (a *Access) MaxJSON() int {
	return 1024 + 6*(len(a.Method)+len(a.Host)+len(a.Path)+len(a.User)) // one byte of a visitor's input may take six as JSON
}

// Policy says who is let in at a claim's name or port.
type Policy struct {
	Document json.RawMessage `json:"document"` // without secrets; {} admits everybody
	Editable bool            `json:"editable"` // whether this client may edit it
	SetBy    string          `json:"set_by,omitempty"`
	// Providers are the names of the identity providers that a document may use.
	Providers []string `json:"sign_in_providers,omitempty"`
	// Webhooks are the providers whose webhooks a document may use. If empty, the relay does
	// not support webhooks.
	Webhooks []string `json:"webhook_providers,omitempty"`
	// Certificates reports whether a document may contain client_certificates.
	Certificates bool      `json:"client_certificates,omitempty"`
	Changed      time.Time `json:"changed,omitzero"`
}

// AgentError is an error on the agent's side of a tunnel.
type AgentError struct {
	Time    time.Time `json:"time"`
	Key     string    `json:"key,omitempty"`
	Message string    `json:"message"`
}

// Problem is the body of every refusal by the control plane.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	// RetryAfter is set if the secret was refused for a reason that may pass: the agent may
	// ask again after about that many seconds. If zero, the refusal is final.
	RetryAfter int `json:"retry_after,omitempty"`
}

func (p *Problem) Error() string { return p.Message }

// Invalid returns the Problem for a field with an invalid value.
func Invalid(field, format string, args ...any) *Problem {
	return &Problem{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Forbidden returns the Problem for something the client may not have. Field may be empty.
func Forbidden(field, format string, args ...any) *Problem {
	return &Problem{Code: CodeForbidden, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Codes of a Problem.
const (
	CodeUnauthorized = "unauthorized" // the secret is unknown, revoked or expired: try again only if RetryAfter says so
	CodeProtocol     = "protocol"     // the protocol versions are incompatible
	CodeInvalid      = "invalid"      // a value is wrong; Field names it
	CodeTaken        = "taken"        // the name or port belongs to another client
	CodeForbidden    = "forbidden"    // the client may not have it
	CodeLimit        = "limit"        // there are too many
	CodeUnavailable  = "unavailable"  // the relay cannot do it now; try again
	CodeChanged      = "changed"      // the current value is not the one that the request expects to replace
	CodeHere         = "here"         // the agent's other session is with this node (Hello.Beside): try another node
)
