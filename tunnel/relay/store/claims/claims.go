// Package claims records who has which name or port: the clients' claims, by what is claimed,
// and the tunnels that hold them. If several nodes give out the same name at the same time,
// only one succeeds. Its callers decide what a client may have and which tunnels are away.
package claims

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"adit/internal/natural"
	"adit/internal/turns"
	"adit/internal/wildcard"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/table"
)

// Claim is a client's right to a name or a port. It outlives sessions, so that a tunnel keeps
// its public URL when either side restarts.
type Claim struct {
	Target   string    `json:"target"` // TargetDomain, TargetPort or TargetPrivate
	ClientID string    `json:"client_id"`
	Created  time.Time `json:"created"`
	Holders  []Holder  `json:"holders"`
}

// Holder is a tunnel that holds a claim. A name has one slot for plain HTTP and one for TLS. A
// slot has several holders only in balanced mode.
type Holder struct {
	Slot      string `json:"slot"`
	Instance  string `json:"instance"`
	Key       string `json:"key"`
	Type      string `json:"type"`
	Mode      string `json:"mode"`
	Ephemeral bool   `json:"ephemeral,omitempty"`
}

// Slots of a claim.
const (
	SlotPlain   = "plain"   // http
	SlotTLS     = "tls"     // https, tls
	SlotPort    = "port"    // tcp, udp
	SlotPrivate = "private" // for tunnels without a public address
)

// Slots returns all slots that a claim may have.
func Slots() []string { return []string{SlotPlain, SlotTLS, SlotPort, SlotPrivate} }

// allNames replaces the first label of a wildcard in a target, since the store's keys may not
// contain *. No client's name has it as a label.
const allNames = "_."

// TargetDomain returns a claim's target for a domain.
func TargetDomain(name string) string {
	if base, ok := wildcard.Base(name); ok {
		name = allNames + base
	}
	return "domain." + name
}

// TargetPort returns a claim's target for a port of "tcp" or "udp".
func TargetPort(network string, port int) string { return network + "." + strconv.Itoa(port) }

// TargetPrivate returns a claim's target for a client's private tunnel.
func TargetPrivate(client, name string) string { return "private." + client + "." + name }

// PrivateOf returns the names of the client and of its tunnel, which contains no dot. ok is
// false if the target is of another kind.
func PrivateOf(target string) (client, name string, ok bool) {
	rest, ok := strings.CutPrefix(target, "private.")
	at := strings.LastIndexByte(rest, '.')
	if !ok || at < 1 || at+1 == len(rest) {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}

// DomainOf returns the domain of a target, or "" if it has none.
func DomainOf(target string) string {
	name, ok := strings.CutPrefix(target, "domain.")
	if !ok {
		return ""
	}
	if base, all := strings.CutPrefix(name, allNames); all {
		return "*." + base
	}
	return name
}

// PortOf returns the network and port of a target. ok is false if it has none.
func PortOf(target string) (network string, port int, ok bool) {
	network, number, found := strings.Cut(target, ".")
	if !found || (network != "tcp" && network != "udp") {
		return "", 0, false
	}
	port, err := strconv.Atoi(number)
	return network, port, err == nil
}

// maxAbsent is how many absent balanced tunnels a claim keeps, the most recent ones. Agents
// without a persistent state folder are new ones at every start, and a claim that kept all of
// them would grow larger than the store accepts.
const maxAbsent = 64

// Limits on concurrent writes of claims. Each is on disk before the next, so more of them
// would not be faster. Writes that waited in the store longer than an attempt lasts would be
// repeated there, alongside the first attempt; so they wait here.
const (
	turnsOfAll    = 64
	turnsOfClient = 8 // so that a client with very many agents does not hold up others
)

// Errors of Take that callers branch on.
var (
	ErrTaken      = errors.New("another client has it")
	ErrTakenByOwn = errors.New("another tunnel of this client has it")
	ErrMode       = errors.New("it is held in another mode")
)

// Registry holds all claims, by target.
type Registry struct {
	table *table.Table[Claim]
	turns *turns.Turns // for writes

	mu       sync.RWMutex
	byClient map[string]map[string]bool // client ID → targets
	byTunnel map[tunnelOf][]string      // → targets; usually one
	owner    map[string]owned           // by target
}

// Table returns the table that holds the claims, for inspection.
func (c *Registry) Table() *table.Table[Claim] { return c.table }

// tunnelOf identifies one tunnel of an agent.
type tunnelOf struct{ client, instance, key string }

// owned says who has a target.
type owned struct {
	client  string
	holders []Holder
}

// New returns the registry for a table.
func New(t *table.Table[Claim]) *Registry {
	c := &Registry{table: t, turns: turns.New(turnsOfAll, turnsOfClient), byClient: make(map[string]map[string]bool), byTunnel: make(map[tunnelOf][]string), owner: make(map[string]owned)}
	t.OnChange(c.index)
	t.Each(func(target string, v Claim) bool { c.index(target, v, true); return true })
	return c
}

func (c *Registry) index(target string, v Claim, exists bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had, ok := c.owner[target]; ok {
		delete(c.byClient[had.client], target)
		if len(c.byClient[had.client]) == 0 {
			delete(c.byClient, had.client)
		}
		for _, h := range had.holders {
			of := tunnelOf{had.client, h.Instance, h.Key}
			c.byTunnel[of] = slices.DeleteFunc(c.byTunnel[of], func(t string) bool { return t == target })
			if len(c.byTunnel[of]) == 0 {
				delete(c.byTunnel, of)
			}
		}
		delete(c.owner, target)
	}
	if !exists {
		return
	}
	c.owner[target] = owned{v.ClientID, v.Holders}
	for _, h := range v.Holders {
		if of := (tunnelOf{v.ClientID, h.Instance, h.Key}); !slices.Contains(c.byTunnel[of], target) {
			c.byTunnel[of] = append(c.byTunnel[of], target)
		}
	}
	if c.byClient[v.ClientID] == nil {
		c.byClient[v.ClientID] = make(map[string]bool)
	}
	c.byClient[v.ClientID][target] = true
}

// OnChange calls f after every change of a target's claim, by this node or another. f must not
// block.
func (c *Registry) OnChange(f func(target string)) {
	c.table.OnChange(func(target string, _ Claim, _ bool) { f(target) })
}

// Get returns the claim on a target.
func (c *Registry) Get(target string) (Claim, bool) {
	v, _, ok := c.table.Get(target)
	return v, ok
}

// List returns all claims, sorted by target.
func (c *Registry) List() []Claim {
	list := c.All()
	slices.SortFunc(list, func(a, b Claim) int { return natural.Compare(a.Target, b.Target) })
	return list
}

// All returns all claims, in no particular order.
func (c *Registry) All() []Claim { return c.table.List() }

// Count returns how many claims there are.
func (c *Registry) Count() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.owner)
}

// OfClient returns a client's claims.
func (c *Registry) OfClient(id string) []Claim {
	c.mu.RLock()
	targets := make([]string, 0, len(c.byClient[id]))
	for t := range c.byClient[id] {
		targets = append(targets, t)
	}
	c.mu.RUnlock()
	slices.SortFunc(targets, natural.Compare)
	list := make([]Claim, 0, len(targets))
	for _, t := range targets {
		if v, ok := c.Get(t); ok && v.ClientID == id {
			list = append(list, v)
		}
	}
	return list
}

// CountOfClient returns how many claims a client has.
func (c *Registry) CountOfClient(id string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.byClient[id])
}

// OfTunnel returns the claims that one tunnel of an agent holds.
func (c *Registry) OfTunnel(clientID, instance, key string) []Claim {
	c.mu.RLock()
	targets := slices.SortedFunc(slices.Values(c.byTunnel[tunnelOf{clientID, instance, key}]), natural.Compare)
	c.mu.RUnlock()
	var list []Claim
	for _, t := range targets {
		v, ok := c.Get(t)
		if ok && v.ClientID == clientID && slices.ContainsFunc(v.Holders, func(h Holder) bool { return h.Instance == instance && h.Key == key }) {
			list = append(list, v)
		}
	}
	return list
}

// Take gives a target to a client's tunnel. It succeeds if the target is free or the client's
// own, or if all its holders are ephemeral and have been away for longer than away tolerates.
// A balanced tunnel joins the client's other tunnels. When Take returns, the claim is on disk.
func (c *Registry) Take(ctx context.Context, target, clientID string, h Holder, away func(clientID string, h Holder) bool) (Claim, error) {
	for seen := (bucket.Contest{}); ; {
		v, rev, ok := c.table.Get(target)
		if err := seen.Next(ctx, rev); err != nil {
			return Claim{}, err
		}
		if !ok {
			v = Claim{Target: target, ClientID: clientID, Created: time.Now().UTC(), Holders: []Holder{h}}
			err := c.turns.Take(ctx, clientID, func() error { return c.table.Create(ctx, target, v) })
			if !errors.Is(err, bucket.ErrExists) {
				return v, err
			}
			// Another node was first; the watch will bring its claim.
			if err := c.refresh(ctx, target); err != nil {
				return Claim{}, err
			}
			continue
		}
		next, err := take(v, clientID, h, away)
		if err != nil {
			return Claim{}, err
		}
		if next.ClientID == v.ClientID && slices.Equal(next.Holders, v.Holders) {
			return v, nil
		}
		err = c.turns.Take(ctx, clientID, func() error { return c.table.Update(ctx, target, next, rev) })
		if !errors.Is(err, bucket.ErrConflict) {
			return next, err
		}
		if err := c.refresh(ctx, target); err != nil {
			return Claim{}, err
		}
	}
}

func take(v Claim, clientID string, h Holder, away func(string, Holder) bool) (Claim, error) {
	holders := slices.Clone(v.Holders)
	if v.ClientID != clientID {
		for _, other := range holders {
			if !other.Ephemeral || !away(v.ClientID, other) {
				return v, ErrTaken
			}
		}
		v.ClientID, v.Created, holders = clientID, time.Now().UTC(), nil
	}
	kept := holders[:0]
	var absent []Holder
	for _, other := range holders {
		switch {
		case other.Instance == h.Instance && other.Key == h.Key:
			continue // the tunnel itself, as it was before
		case other.Slot != h.Slot:
		case away(clientID, other):
			if other.Mode != "balanced" || h.Mode != "balanced" {
				continue
			}
			absent = append(absent, other)
		case other.Mode == "balanced" && h.Mode == "balanced" && other.Type == h.Type:
		case other.Mode == "balanced" || h.Mode == "balanced":
			return v, ErrMode
		default:
			return v, ErrTakenByOwn
		}
		kept = append(kept, other)
	}
	if extra := len(absent) - maxAbsent; extra > 0 {
		kept = slices.DeleteFunc(kept, func(h Holder) bool { return slices.Contains(absent[:extra], h) })
	}
	v.Holders = append(kept, h)
	return v, nil
}

// Ask reports whether somebody has a target, according to the leader.
func (c *Registry) Ask(ctx context.Context, target string) (claimed bool, err error) {
	return c.table.Refresh(ctx, target)
}

// refresh updates the copy of a target in memory.
func (c *Registry) refresh(ctx context.Context, target string) error {
	_, err := c.table.Refresh(ctx, target)
	return err
}

// Release takes a target away from a tunnel, if the tunnel has it.
func (c *Registry) Release(ctx context.Context, target, clientID, instance, key string) error {
	for seen := (bucket.Contest{}); ; {
		v, rev, ok := c.table.Get(target)
		if err := seen.Next(ctx, rev); err != nil {
			return err
		}
		if !ok || v.ClientID != clientID {
			return nil
		}
		holders := without(v.Holders, instance, key)
		if len(holders) == len(v.Holders) {
			return nil
		}
		err := c.leave(ctx, v, rev, holders)
		if !errors.Is(err, bucket.ErrConflict) {
			return err
		}
		if err := c.refresh(ctx, target); err != nil {
			return err
		}
	}
}

// ReleaseAway takes a target away from a tunnel that is away as far as this node knows. If the
// claim has changed since this node looked, perhaps by a node that knew better, ReleaseAway
// changes nothing.
func (c *Registry) ReleaseAway(ctx context.Context, target, clientID, instance, key string, away func(clientID string, h Holder) bool) error {
	v, rev, ok := c.table.Get(target)
	if !ok || v.ClientID != clientID {
		return nil
	}
	at := slices.IndexFunc(v.Holders, func(h Holder) bool { return h.Instance == instance && h.Key == key })
	if at < 0 || !away(clientID, v.Holders[at]) {
		return nil
	}
	err := c.leave(ctx, v, rev, without(v.Holders, instance, key))
	if errors.Is(err, bucket.ErrConflict) {
		return c.refresh(ctx, target)
	}
	return err
}

// leave writes the remaining holders of a claim with the given revision.
func (c *Registry) leave(ctx context.Context, v Claim, rev uint64, holders []Holder) error {
	return c.turns.Take(ctx, v.ClientID, func() error {
		if len(holders) == 0 {
			return c.table.Remove(ctx, v.Target, rev)
		}
		v.Holders = holders
		return c.table.Update(ctx, v.Target, v, rev)
	})
}

func without(holders []Holder, instance, key string) []Holder {
	return slices.DeleteFunc(slices.Clone(holders), func(h Holder) bool { return h.Instance == instance && h.Key == key })
}

// ReleaseUnless takes a target away from its client. If against returns an error, nothing
// changes and that error is returned. Without a claim it returns ErrNotFound.
func (c *Registry) ReleaseUnless(ctx context.Context, target string, against table.Against[Claim]) error {
	return c.table.Unless(ctx, target, against, func(against table.Against[Claim]) error { return c.table.DropUnless(ctx, target, against) })
}

// ReleaseClient releases everything that a client has.
func (c *Registry) ReleaseClient(ctx context.Context, id string) error {
	for _, v := range c.OfClient(id) {
		for _, h := range v.Holders {
			if err := c.Release(ctx, v.Target, id, h.Instance, h.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Put stores a claim and replaces any other of the same target. It is only for a restore,
// which has the store to itself.
func (c *Registry) Put(ctx context.Context, v Claim) error { return c.table.Put(ctx, v.Target, v) }
