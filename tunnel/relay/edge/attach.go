package edge

import (
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
)

// Attach puts a tunnel behind a face; see Table.Attach.
func (e *Edge) Attach(f routing.Face, b *routing.Backend) (*routing.Endpoint, error) {
	return e.table.Attach(f, b)
}

// Detach removes a tunnel from behind its face; see Table.Detach.
func (e *Edge) Detach(f routing.Face, b *routing.Backend) { e.table.Detach(f, b) }

// Lose removes a tunnel whose session has ended from behind its face; see Table.Lose.
func (e *Edge) Lose(f routing.Face, b *routing.Backend) { e.table.Lose(f, b) }

// Expect makes visitors of a face wait until it is served; see Table.Expect.
func (e *Edge) Expect(f routing.Face) { e.table.Expect(f) }

// GiveUp ends all waiting for a target; see Table.GiveUp.
func (e *Edge) GiveUp(target string) { e.table.GiveUp(target) }

// Reorder sorts the ways to the tunnels behind faces again; see Table.Reorder.
func (e *Edge) Reorder(faces ...routing.Face) { e.table.Reorder(faces...) }

// Serves reports whether the target has an endpoint.
func (e *Edge) Serves(target string) bool { return e.table.Serves(target) }

// Endpoints returns all endpoints that are served, sorted by target.
func (e *Edge) Endpoints() []*routing.Endpoint { return e.table.Endpoints() }

// Served returns the number of endpoints that are served, by type.
func (e *Edge) Served() map[string]int { return e.table.Served() }

// Invitations returns the faces of the private tunnels that admit a guest; see
// Table.Invitations.
func (e *Edge) Invitations(g visitor.Guest, instance string) []routing.Face {
	return e.table.Invitations(g, instance)
}
