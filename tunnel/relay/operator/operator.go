// Package operator implements what the relay's operator may see and change: the answers
// to the console's requests. It builds on the store and on the parts of a running relay.
// Those parts learn from the store what a change means for sessions and visitors. Who may
// make a request is decided by package console.
package operator

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/activity"
	"adit/tunnel/relay/clients"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/geo"
	"adit/tunnel/relay/ledger"
	"adit/tunnel/relay/metrics"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/outlets"
	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/proof"
	"adit/tunnel/relay/quota"
	"adit/tunnel/relay/signin"
	"adit/tunnel/relay/store"
)

// Relay provides what only the running relay knows.
type Relay interface {
	// State reports whether the relay is ending, and how many agents are connected to
	// this node.
	State() (draining bool, sessions int)
	// CutOff reports whether other nodes may be making changes that this one does not
	// hear of.
	CutOff() bool
	// SessionList returns the sessions of agents connected to this node, oldest first.
	SessionList() []console.Session
	// Connected returns, by client id, what is connected to any node.
	Connected() map[string]Connected
	// NodeList returns the relay's nodes, including this one, by name.
	NodeList() []console.Node
}

// Connected counts the sessions and tunnels of a client's agents that are connected.
type Connected struct {
	Sessions, Tunnels int
	Newest            *store.Seen // the newest session at this node; nil if there is none
}

// Config contains what an Operator needs.
type Config struct {
	Relay    Relay
	Settings config.Config // in force
	Version  string
	Node     string // its name
	Started  time.Time
	Addrs    Addrs
	CAFile   string
	Host     string // of tcp and udp tunnels
	// AdminToken is the part of the data folder that a backup contains.
	AdminToken string

	Store       *store.Store
	Edge        *edge.Edge
	Clients     clients.Registry
	Names       names.Rules
	Policies    *policies.Book
	Access      *accesslog.Log
	Ledger      *ledger.Ledger
	Sinks       *outlets.Set
	Notes       *activity.Notes
	Accounts    *quota.Accounts
	Proofs      *proof.Records
	Geo         *geo.File
	SignIn      *signin.Visitors // nil: there is no sign-in
	CallbackURL string           // to register with identity providers
	Figures     metrics.Sources
	PublicURL   func(routing.Face) string // returns the URL at which visitors reach a face
	// Certificate returns the certificate that visitors of a name see, whichever source
	// it comes from.
	Certificate func(ctx context.Context, name string) *console.Certificate
	Log         *slog.Logger
}

// Addrs contains the addresses that the relay listens on.
type Addrs struct {
	Tunnel, HTTP, HTTPS, Console string
}

// Operator answers the console's requests.
type Operator struct{ cfg Config }

// New returns an Operator.
func New(cfg Config) *Operator { return &Operator{cfg} }

var _ console.Relay = (*Operator)(nil)

func bad(status int, code, field, format string, args ...any) error {
	return &console.Error{Status: status, Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Status returns a summary of the relay.
func (o *Operator) Status() console.Status {
	draining, sessions := o.cfg.Relay.State()
	s := console.Status{
		State: "ok", Version: o.cfg.Version, Node: o.cfg.Node, Domain: o.cfg.Settings.Domain, StartedAt: monotime.Wall(o.cfg.Started),
		TunnelListen: o.cfg.Addrs.Tunnel, EdgeHTTP: o.cfg.Addrs.HTTP, EdgeHTTPS: o.cfg.Addrs.HTTPS, Console: o.cfg.Addrs.Console,
		CAFile: o.cfg.CAFile, GeoDatabase: o.cfg.Geo.Database() != nil,
		Sessions: sessions, Claims: o.cfg.Store.Claims.Count(),
	}
	for _, n := range o.cfg.Edge.Served() {
		s.Endpoints += n
	}
	if draining {
		s.State = "draining"
	}
	s.Store = o.StoreCondition()
	for _, c := range o.cfg.Store.Clients.List() {
		if c.Active() {
			s.Clients++
		}
	}
	return s
}

// EndpointList returns what this node serves.
func (o *Operator) EndpointList() []console.Endpoint {
	clients := o.clientNames()
	list := []console.Endpoint{}
	for _, ep := range o.cfg.Edge.Endpoints() {
		c := ep.Counters()
		v := console.Endpoint{
			ID: ep.ID(), Target: names.Shown(ep.Target), Type: ep.Type, Mode: ep.Mode, PublicURL: o.cfg.PublicURL(ep.Face),
			Clients: []string{}, Visitors: []string{}, Since: monotime.Wall(ep.Since), Policy: o.cfg.Policies.Table.Get(ep.Target) != nil,
			Connections: console.Connections{Open: c.Open, Total: c.Total}, Bytes: console.Bytes{In: c.BytesIn, Out: c.BytesOut},
		}
		for _, b := range ep.Backends() {
			v.Agents++
			if name := clients[b.Agent.ClientID]; !slices.Contains(v.Clients, name) {
				v.Clients = append(v.Clients, name)
			}
			for _, name := range b.Visitors {
				if !slices.Contains(v.Visitors, name) {
					v.Visitors = append(v.Visitors, name)
				}
			}
		}
		list = append(list, v)
	}
	return list
}

// clientNames returns the clients' names by id.
func (o *Operator) clientNames() map[string]string {
	names := map[string]string{}
	for _, c := range o.cfg.Store.Clients.List() {
		names[c.ID] = c.Name
	}
	return names
}
