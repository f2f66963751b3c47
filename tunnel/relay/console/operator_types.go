package console

import (
	"context"
	"net/url"
	"time"

	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// Operator is the part of Relay for clients, access events, the audit log, sinks and
// settings.
type Operator interface {
	Client(name string) (Client, error)
	SetClient(ctx context.Context, name string, scope Scope, e Expected) (Client, error)
	Access(ctx context.Context, q Access) (AccessPage, error)
	ExportAccess(ctx context.Context, q Access, give func(*wire.Access) error) error
	FollowAccess(ctx context.Context, q Access, give func(list []wire.Access, missed int) error) error
	// BeginChange must be called before ctx's actor changes something. It refuses while
	// too many lines wait for the audit log. end must be called with the result after the
	// last Record of the change.
	BeginChange(ctx context.Context, what string) (end func(error), err error)
	// Record writes a change into the audit log, in the name of ctx's actor.
	Record(ctx context.Context, action, target string, detail any)
	AuditList(ctx context.Context, q AuditQuestion) (AuditPage, error)
	AuditVerify(ctx context.Context, wanted string) (audit.Result, error)
	AuditExport(ctx context.Context, give func(audit.Entry) error) error
	SinkList() []Sink
	Sink(name string) (Sink, error)
	SetSink(ctx context.Context, name string, document []byte, e Expected) (Sink, error)
	DeleteSink(ctx context.Context, name string, e Expected) error
	TestSink(ctx context.Context, name string) (SinkTest, error)
	// EndSignIns ends all current sign-ins of a visitor.
	EndSignIns(ctx context.Context, user string) (EndedSignIns, error)
	DomainList(ctx context.Context) []Domain
	// ErrorList returns what agents reported, including agents that have left, newest
	// first.
	ErrorList() []ReportedError
	Settings(ctx context.Context) (Settings, error)
}

// Scope is what a client may have.
type Scope = scope.Scope

// Usage is how much a client's visitors have moved this month.
type Usage struct {
	Month    string `json:"month"`
	BytesIn  int64  `json:"bytes_in"`
	BytesOut int64  `json:"bytes_out"`
	Limit    int64  `json:"limit,omitempty"`
	State    string `json:"state"` // ok, near, over, throttled, stopped
}

// Record is a DNS TXT record that proves names outside the relay's domain.
type Record struct {
	Name  string `json:"record"` // DOMAIN stands for the name or one above it
	Value string `json:"value"`
}

// AccessPage is the result of one turn of a search, newest first.
type AccessPage = accesslog.Page

// Sink is a destination for events.
type Sink struct {
	Tag         string    `json:"-"` // the ETag, which changes with every change
	Name        string    `json:"name"`
	Type        string    `json:"type"`
	URL         string    `json:"url,omitempty"`
	HasSecret   bool      `json:"has_secret"`
	Address     string    `json:"address,omitempty"`
	CA          string    `json:"ca,omitempty"`
	Facility    *int      `json:"facility,omitempty"`
	Events      []string  `json:"events"`
	RefusedOnly bool      `json:"refused_only"`
	Enabled     bool      `json:"enabled"`
	ChangedAt   time.Time `json:"changed_at"`
	State       SinkState `json:"state"`
}

// BareURL returns the URL of a webhook as shown to those who may not change the sink, and
// in the audit log, from which nothing is ever deleted. Some receivers have their key in
// the path or the query.
func (s Sink) BareURL() string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	bare := u.Scheme + "://" + u.Host
	if u.EscapedPath() != "" && u.EscapedPath() != "/" || u.RawQuery != "" {
		bare += "/…"
	}
	return bare
}

// SinkState is the state of a sink at one node since it started.
type SinkState struct {
	Node        string     `json:"node"`
	Sent        uint64     `json:"sent"`
	Failed      uint64     `json:"failed"`
	Dropped     uint64     `json:"dropped"`
	Queued      int        `json:"queued"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	LastSentAt  *time.Time `json:"last_sent_at,omitempty"`
}

// SinkTest is the result of sending a test event to a sink.
type SinkTest struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// Domain is a name that a client has, or has proved.
type Domain struct {
	Domain   string     `json:"domain"`
	Client   string     `json:"client"`
	ClientID string     `json:"client_id"`
	Custom   bool       `json:"custom"` // outside the relay's domain
	ProvedAt *time.Time `json:"proved_at,omitempty"`
	Proof    string     `json:"proof,omitempty"`
	Running  bool       `json:"running"`
	// Certificate is what this node shows to visitors of the name.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// The sources of a certificate.
const (
	CertificateFile  = "file"  // tls_cert
	CertificateACME  = "acme"  // a public authority
	CertificateLocal = "local" // the relay's own authority
)

// Certificate is the state of a domain's certificate. Without NotAfter, there is none
// yet.
type Certificate struct {
	Source   string     `json:"source"`
	Issuer   string     `json:"issuer,omitempty"`
	NotAfter *time.Time `json:"not_after,omitempty"`
	Trying   bool       `json:"trying"`
	Error    string     `json:"error,omitempty"` // of the last attempt to get one
}

// ClientError is something that an agent of one client reported about its side.
type ClientError struct {
	store.ClientError
	PublicURL string `json:"public_url,omitempty"` // of the tunnel, if it is served now
}

// ReportedError is something that an agent reported about its side.
type ReportedError struct {
	ClientError
	Client    string `json:"client"`
	ClientID  string `json:"client_id"`
	Connected bool   `json:"connected"` // the client has a session at this node now
}

// Settings contains the settings in force.
type Settings struct {
	Node          string         `json:"node"`
	Domain        string         `json:"domain"`
	PublicHost    string         `json:"public_host"`
	AnyDomain     bool           `json:"any_domain"`
	Geo           GeoSettings    `json:"geo_database"`
	Access        AccessSettings `json:"access"`
	SchemaVersion int            `json:"schema_version"`
	Sinks         SinkSettings   `json:"sinks"`
	SignIn        SignInSettings `json:"sign_in"`
	Limits        map[string]any `json:"limits"`
}

// SignInSettings says how visitors can sign in.
type SignInSettings struct {
	CallbackURL string           `json:"callback_url"` // to register with providers
	Providers   []SignInProvider `json:"providers"`
}

// EndedSignIns says whose sign-ins no longer count, if they are older than EndedAt.
type EndedSignIns struct {
	User    string    `json:"user"`
	EndedAt time.Time `json:"ended_at"`
}

// SignInProvider is an identity provider.
type SignInProvider struct {
	Name    string     `json:"name"`
	Type    string     `json:"type"`               // oidc or github
	Issuer  string     `json:"issuer"`             // URL; for GitHub, its site
	AskedAt *time.Time `json:"asked_at,omitempty"` // the last time; nil: never
	Error   string     `json:"error,omitempty"`    // of the last time
}

// GeoSettings describes the database of countries.
type GeoSettings struct {
	File     string     `json:"file"`
	LoadedAt *time.Time `json:"loaded_at,omitempty"`
	BuildAt  *time.Time `json:"build_at,omitempty"`
	Error    string     `json:"error,omitempty"`
}

// AccessSettings says which access events are kept.
type AccessSettings struct {
	Days        int        `json:"days"`
	Bytes       int64      `json:"bytes"`
	StoredBytes uint64     `json:"stored_bytes"`
	Oldest      *time.Time `json:"oldest,omitempty"`
}

// SinkSettings says what sinks may reach.
type SinkSettings struct {
	AllowPrivate bool `json:"allow_private"`
}
