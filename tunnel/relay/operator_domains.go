package relay

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
)

// certificatesFor is how long the certificates of all domains may take to read.
const certificatesFor = 3 * time.Second

// DomainList are the names that clients have, and those that they have proved.
func (o operator) DomainList(ctx context.Context) []console.Domain {
	names := o.clientNames()
	running := map[string]bool{}
	for _, ep := range o.edge.Endpoints() {
		if ep.Domain != "" {
			running[ep.Domain] = true
		}
	}
	found := map[string]*console.Domain{}
	for _, c := range o.store.Claims.List() {
		if name := store.DomainOf(c.Target); name != "" {
			found[name] = &console.Domain{Domain: name, ClientID: c.ClientID}
		}
	}
	for _, p := range o.store.Proofs.List() {
		used := false
		for _, name := range provedBy(p.Domain) {
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
	// A store that is far away must not keep the page waiting.
	ctx, cancel := context.WithTimeout(ctx, certificatesFor)
	defer cancel()
	list := []console.Domain{}
	for name, d := range found {
		d.Client, d.Custom, d.Running = names[d.ClientID], !o.ownName(name), running[name]
		d.Certificate = o.certificateOf(ctx, name)
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b console.Domain) int { return natural.Compare(a.Domain, b.Domain) })
	return list
}

// certificateOf is what visitors of a name are shown, by whoever shows it.
func (o operator) certificateOf(ctx context.Context, name string) *console.Certificate {
	if o.file != nil {
		if leaf := o.file.Covers(name); leaf != nil {
			return shownCertificate(console.CertificateFile, leaf)
		}
	}
	if o.acme == nil {
		if leaf := o.local.Leaf(name); leaf != nil {
			return shownCertificate(console.CertificateLocal, leaf)
		}
		return &console.Certificate{Source: console.CertificateLocal}
	}
	s := o.acme.State(ctx, name)
	c := &console.Certificate{Source: console.CertificateACME, Issuer: s.Issuer, Trying: s.Trying}
	if !s.NotAfter.IsZero() {
		c.NotAfter = &s.NotAfter
	}
	if s.Err != nil {
		c.Error = s.Err.Error()
	}
	return c
}

func shownCertificate(source string, leaf *x509.Certificate) *console.Certificate {
	until := leaf.NotAfter.UTC()
	issuer := leaf.Issuer.CommonName
	if len(leaf.Issuer.Organization) > 0 {
		issuer = leaf.Issuer.Organization[0]
	}
	return &console.Certificate{Source: source, Issuer: issuer, NotAfter: &until}
}

// maxReported is how many errors of agents are shown.
const maxReported = 500

// ErrorList is what agents reported, those that left too, newest first.
func (o operator) ErrorList() []console.ReportedError {
	connected := map[string]bool{}
	for _, s := range o.sessionList() {
		connected[s.client.ID] = true
	}
	// An agent names its tunnel by a key of its own, which says nothing to an operator.
	type tunnel struct{ clientID, key string }
	urls := map[tunnel]string{}
	for _, ep := range o.edge.Endpoints() {
		for _, b := range ep.Backends() {
			urls[tunnel{b.Agent.ClientID, b.Key}] = o.publicURL(ep.Face)
		}
	}
	list := []console.ReportedError{}
	for id, name := range o.clientNames() {
		for _, e := range o.notes.Errors(id) {
			list = append(list, console.ReportedError{
				ClientError: e, Client: name, ClientID: id, Connected: connected[id], PublicURL: urls[tunnel{id, e.Key}],
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
