// Package wire has what an agent and a relay say to each other as values and
// bytes: the messages of the control plane, the headers of streams and
// datagrams, and the auth token. It is pure: no I/O, and every limit is checked
// before memory is taken.
//
// The control plane is HTTP/1.1 over streams that the agent opens; the relay
// answers. Streams that the relay opens carry visitors: they begin with a PROXY
// protocol v2 header (see Preface). Datagrams carry UDP visitors (see Flow).
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
	PathHello  = "/v1/hello"   // POST Hello, answers Welcome; first of all
	PathClaims = "/v1/claims/" // PUT Claim at /v1/claims/{key}, answers Grant; DELETE gives it back, with ?keep=1 only the endpoint ends and the name stays the client's, with ?move=1 the tunnel is to have another
	PathEvents = "/v1/events"  // GET, answers Events as NDJSON until the session ends; without EventAccess if ParamAccess is AccessNone
	PathErrors = "/v1/errors"  // POST []AgentError
	PathSpeed  = "/v1/speed"   // GET sends bytes for a moment; POST takes such, answers Speed. Only a relay with FeatureSpeed
	PathPolicy = "/v1/policy/" // GET answers the Policy of a claim at /v1/policy/{key}; PUT a Policy's Document, where the operator lets the client. Answers have an ETag, which a PUT may name in If-Match
)

// ParamAccess is a parameter of PathEvents. A busy tunnel has many access events,
// so an agent that does not read them says AccessNone.
const (
	ParamAccess = "access"
	AccessNone  = "none"
)

// Hello authenticates the agent. It is the first request of a session; any other
// request before it, and a second one, are refused.
type Hello struct {
	Protocol int    `json:"protocol"`
	Secret   []byte `json:"secret"`              // of the auth token
	ClientID string `json:"client_id,omitempty"` // what the person bound the agent to, if anything
	Instance string `json:"instance"`            // random, once per state folder: tells two agents with one token apart
	Version  string `json:"version"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Hostname string `json:"hostname,omitempty"`
	// Beside is the id of the node that the agent has its other session with.
	// That node refuses this one with CodeHere.
	Beside string `json:"beside,omitempty"`
	// Trial: the session is for PathSpeed alone. It lasts for 20 seconds, serves no
	// tunnel, and takes no other session's place.
	Trial bool `json:"trial,omitempty"`
}

// Speed answers a POST of PathSpeed.
type Speed struct {
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Node is where one node of the relay listens for agents.
type Node struct {
	ID      string `json:"id"`
	Address string `json:"address"` // host:port
}

// Welcome answers an accepted Hello.
type Welcome struct {
	SessionID  string `json:"session_id"`
	ClientID   string `json:"client_id"`
	ClientName string `json:"client_name"`
	Domain     string `json:"domain"`
	Node       string `json:"node"`
	Version    string `json:"version"`
	// Addresses are where this relay's nodes listen for agents, host:port, best
	// first; empty keeps the token's. The authority stays the token's.
	Addresses []string `json:"addresses,omitempty"`
	// NodeID is of the node that answers. Nodes are all nodes, in the order in
	// which this agent should choose one for another session; empty where there
	// is no other. An agent keeps sessions with two of them.
	NodeID string `json:"node_id,omitempty"`
	Nodes  []Node `json:"nodes,omitempty"`
	// Features are what this relay does of that which older ones ignore.
	Features []string `json:"features,omitempty"`
}

// Features of a relay.
const (
	FeatureHeaders = "headers" // it changes headers as a Claim says
	FeaturePaths   = "paths"   // it leads the paths of a Claim to services of their own
	// FeatureWildcards: the Domain of a Claim may be all names below one.
	FeatureWildcards = "wildcards"
	FeatureSpeed     = "speed"   // it has PathSpeed, and knows of a Trial
	FeaturePrivate   = "private" // it has ModePrivate and PathVisit
	// FeaturePrivateUDP: a tunnel of ModePrivate may be of type udp.
	FeaturePrivateUDP = "private_udp"
	// FeatureInvitations: it has PathInvitations.
	FeatureInvitations = "invitations"
	// FeaturePolicies: it has the Policy of a Claim in force before it serves anybody.
	FeaturePolicies = "policies"
	// FeaturePolicyHolds: it knows PolicyHolds of a Claim.
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

// Claim asks for a tunnel's public face. Doing it again with the same key
// changes it; the same domain and port are given back as far as they are free.
type Claim struct {
	Type       string `json:"type"`
	Mode       string `json:"mode"`
	Domain     string `json:"domain,omitempty"`      // full name or one label, or *. and either; of a private one its name; empty: the relay gives one
	RemotePort int    `json:"remote_port,omitempty"` // tcp, udp; 0: the relay gives one
	Name       string `json:"name,omitempty"`
	HostHeader string `json:"host_header,omitempty"` // http, https: rewritten for the origin at the edge
	// What the edge changes in requests and in the origin's answers (http, https).
	// Only a relay with FeatureHeaders does.
	RequestHeaders  HeaderChanges `json:"request_headers,omitzero"`
	ResponseHeaders HeaderChanges `json:"response_headers,omitzero"`
	// Paths have services of their own (http, https): the streams to those name the
	// path in their Preface. Only a relay with FeaturePaths leads them.
	Paths []ClaimPath `json:"paths,omitempty"`
	// Visitors are the names of the clients, beside this one, that may visit a
	// private tunnel; AnyClient is all. Only a relay with FeaturePrivate has those.
	Visitors []string `json:"visitors,omitempty"`
	// Policy says who is let in, as a Policy's Document; empty: what the relay has for
	// the name or port. It is in force before the first visitor is let in, unless there
	// is a policy already: that stays, but for one of this client's with PolicyReplaces.
	// Only a relay with FeaturePolicies takes it.
	Policy json.RawMessage `json:"policy,omitempty"`
	// PolicyReplaces: the name or port is not one that the tunnel was given before, so
	// what policy it has is of another tunnel.
	PolicyReplaces bool `json:"policy_replaces,omitempty"`
	// PolicyHolds: Policy is declared, so it replaces what this client has set otherwise,
	// for this name or port or for PolicyOf. Only a relay with FeaturePolicyHolds does so.
	PolicyHolds bool `json:"policy_holds,omitempty"`
	// PolicyOf is the name or port that the tunnel had, as shop.example.com or tcp.20001.
	// The policy that this client has set for it goes before Policy, and holds for the
	// new name or port, too, if there is none.
	PolicyOf string `json:"policy_of,omitempty"`
	// Ephemeral claims are forgotten when the session ends; others are kept for the client.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Unshared streams carry the requests of one visitor only (http, https),
	// because the origin is told who it is in a PROXY header.
	Unshared bool `json:"unshared,omitempty"`
	// HTTP2 is how the origin is spoken to (http, https): by HTTP/2 over raw
	// streams, but for changes of protocol. Without it only gRPC is.
	HTTP2 bool `json:"http2,omitempty"`
	// Scheme is that of the URLs by which the origin knows itself (http, https); empty:
	// an agent of a version before this does not say, and none are written for it.
	Scheme string `json:"scheme,omitempty"`
	// Port is the one that the origin may name in URLs of its own, since it listens there
	// (http, https); 0: an agent of a version before this does not say.
	Port int `json:"port,omitempty"`
}

// ChangesHeaders reports whether the edge is to change header fields.
func (c *Claim) ChangesHeaders() bool {
	return !c.RequestHeaders.IsZero() || !c.ResponseHeaders.IsZero()
}

// Equal reports whether two claims ask for the same.
func (c Claim) Equal(o Claim) bool { return reflect.DeepEqual(c, o) }

// Grant answers a Claim that was accepted: the endpoint runs.
type Grant struct {
	EndpointID string `json:"endpoint_id"`
	Number     uint32 `json:"number"` // names the endpoint in Preface and Flow, within this session
	Domain     string `json:"domain,omitempty"`
	RemotePort int    `json:"remote_port,omitempty"`
	PublicURL  string `json:"public_url"`
}

// Event types.
const (
	EventDrain     = "drain"      // this relay ends: connect again, elsewhere if Addresses says so
	EventClaimLost = "claim_lost" // Key's endpoint was taken away; Reason says why
	EventRevoked   = "revoked"    // the client was revoked or has expired; the session ends now
	EventMoved     = "moved"      // Addresses are the relay's from now on
	EventAccess    = "access"     // one visitor's request or connection to an own tunnel
	EventScope     = "scope"      // what the client may have has changed: what was refused may be granted now
	EventNodes     = "nodes"      // Nodes are the relay's from now on
	EventPing      = "ping"       // nothing; shows that the stream lives
)

// Event is one line of the relay's event stream.
type Event struct {
	Type      string   `json:"type"`
	Key       string   `json:"key,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Nodes     []Node   `json:"nodes,omitempty"` // drain, nodes: as in Welcome
	Access    *Access  `json:"access,omitempty"`
	// RetryAfter is as in Problem (revoked).
	RetryAfter int `json:"retry_after,omitempty"`
}

// Access is one visitor's request (http, https) or connection, allowed or refused.
type Access struct {
	ID       string        `json:"id,omitempty"` // of a stored one
	Time     time.Time     `json:"time"`
	Node     string        `json:"node,omitempty"` // that the visitor came to
	Endpoint string        `json:"endpoint_id"`
	ClientID string        `json:"client_id,omitempty"`
	Key      string        `json:"key,omitempty"`
	Visitor  string        `json:"visitor"`           // address, without the port
	User     string        `json:"user,omitempty"`    // who it is, where a policy asks
	Country  string        `json:"country,omitempty"` // as DE or US-CA, where the relay knows it
	Method   string        `json:"method,omitempty"`
	Host     string        `json:"host,omitempty"`
	Path     string        `json:"path,omitempty"` // without the query
	Status   int           `json:"status,omitempty"`
	Refused  string        `json:"refused,omitempty"` // the rule that refused it
	BytesIn  int64         `json:"bytes_in"`
	BytesOut int64         `json:"bytes_out"`
	Duration time.Duration `json:"duration_ns"`
}

// MaxJSON returns how many bytes the event has as JSON at most: those who send
// many together bound what they send.
func (a *Access) MaxJSON() int {
	return 1024 + 6*(len(a.Method)+len(a.Host)+len(a.Path)+len(a.User)) // a byte of what a visitor wrote may become six
}

// Policy says who is let in to a claim's name or port.
type Policy struct {
	Document json.RawMessage `json:"document"` // without secrets; {} lets everybody in
	Editable bool            `json:"editable"` // by this client
	SetBy    string          `json:"set_by,omitempty"`
	// Providers are the names of identity providers that a document may have.
	Providers []string `json:"sign_in_providers,omitempty"`
	// Webhooks are the providers whose webhooks a document may have. None: the relay
	// does not know of webhooks.
	Webhooks []string `json:"webhook_providers,omitempty"`
	// Certificates reports whether a document may have client_certificates.
	Certificates bool      `json:"client_certificates,omitempty"`
	Changed      time.Time `json:"changed,omitzero"`
}

// AgentError is something that went wrong at the agent's side of a tunnel.
type AgentError struct {
	Time    time.Time `json:"time"`
	Key     string    `json:"key,omitempty"`
	Message string    `json:"message"`
}

// Problem is the body of every refusal of the control plane.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	// RetryAfter is set where a refusal of the secret may end by itself: after
	// about so many seconds the agent may ask again. If zero, it does not.
	RetryAfter int `json:"retry_after,omitempty"`
}

func (p *Problem) Error() string { return p.Message }

// Invalid is the Problem of a field that may not be as it is.
func Invalid(field, format string, args ...any) *Problem {
	return &Problem{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Forbidden is the Problem of what a client may not have. Field may be empty.
func Forbidden(field, format string, args ...any) *Problem {
	return &Problem{Code: CodeForbidden, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Codes of a Problem.
const (
	CodeUnauthorized = "unauthorized" // the secret is unknown, revoked or expired: do not try again but as RetryAfter says
	CodeProtocol     = "protocol"     // the versions do not fit
	CodeInvalid      = "invalid"      // a value is wrong; Field names it
	CodeTaken        = "taken"        // the name or port is another's
	CodeForbidden    = "forbidden"    // the client may not have it
	CodeLimit        = "limit"        // too many
	CodeUnavailable  = "unavailable"  // the relay cannot now; try again
	CodeChanged      = "changed"      // it is not what the request expects to replace
	CodeHere         = "here"         // the agent's other session is with this node (Hello.Beside): try another
)
