package operator

import (
	"context"
	"slices"
	"strings"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/proof"
	"adit/tunnel/relay/store/claims"
)

// certificatesFor is how long reading the certificates of all domains may take.
const certificatesFor = 3 * time.Second

// DomainList returns the names that clients have, and those that they have proved.
func (o *Operator) DomainList(ctx context.Context) []console.Domain {
	names := o.clientNames()
	running := map[string]bool{}
	for _, ep := range o.cfg.Edge.Endpoints() {
		if ep.Domain != "" {
			running[ep.Domain] = true
		}
	}
	found := map[string]*console.Domain{}
	for _, c := range o.cfg.Store.Claims.List() {
		if name := claims.DomainOf(c.Target); name != "" {
			found[name] = &console.Domain{Domain: name, ClientID: c.ClientID}
		}
	}
	for _, p := range o.cfg.Store.Proofs.List() {
		used := false
		for _, name := range proof.Names(p.Domain) {
			if d := found[name]; d != nil {
				used = true
				if d.ClientID == p.ClientID {
					d.ProvedAt, d.Proof = &p.Proved, p.By
				}
			}
		}
		if !used {
			found[p.Domain] = &console.Domain{Domain: p.Domain, ClientID: p.ClientID, ProvedAt: &p.Proved, Proof: p.By}
		}
	}
	// An unavailable store must not keep the page waiting.
	ctx, cancel := context.WithTimeout(ctx, certificatesFor)
	defer cancel()
	list := []console.Domain{}
	for name, d := range found {
		d.Client, d.Custom, d.Running = names[d.ClientID], !o.cfg.Names.Under(name), running[name]
		d.Certificate = o.cfg.Certificate(ctx, name)
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b console.Domain) int { return natural.Compare(a.Domain, b.Domain) })
	return list
}

// maxReported is how many errors of agents are shown.
const maxReported = 500

// agentKey is how a client's agents identify a tunnel. It means nothing to an operator.
type agentKey struct{ clientID, key string }

// publicURLs returns the URLs of the tunnels that are served now.
func (o *Operator) publicURLs() map[agentKey]string {
	urls := make(map[agentKey]string)
	for _, ep := range o.cfg.Edge.Endpoints() {
		for _, b := range ep.Backends() {
			urls[agentKey{b.Agent.ClientID, b.Key}] = o.cfg.PublicURL(ep.Face)
		}
	}
	return urls
}

// ErrorList returns what agents reported, including agents that have left, newest first.
func (o *Operator) ErrorList() []console.ReportedError {
	connected, urls := o.cfg.Relay.Connected(), o.publicURLs()
	list := []console.ReportedError{}
	for id, name := range o.clientNames() {
		for _, e := range o.cfg.Notes.Errors(id) {
			list = append(list, console.ReportedError{
				ClientError: console.ClientError{ClientError: e, PublicURL: urls[agentKey{id, e.Key}]}, Client: name, ClientID: id, Connected: connected[id].Sessions > 0,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b console.ReportedError) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Client, b.Client)
	})
	return list[:min(len(list), maxReported)]
}
