package edge

import (
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
)

// Attach puts a tunnel behind a face, as Table.Attach does.
func (e *Edge) Attach(f routing.Face, b *routing.Backend) (*routing.Endpoint, error) {
	return e.table.Attach(f, b)
}

// Detach takes a tunnel from behind its face, as Table.Detach does.
func (e *Edge) Detach(f routing.Face, b *routing.Backend) { e.table.Detach(f, b) }

// Lose takes a tunnel whose session has ended from behind its face, as Table.Lose does.
func (e *Edge) Lose(f routing.Face, b *routing.Backend) { e.table.Lose(f, b) }

// Expect has visitors of a face wait for it, as Table.Expect does.
func (e *Edge) Expect(f routing.Face) { e.table.Expect(f) }

// GiveUp has nobody wait for a target any more, as Table.GiveUp does.
func (e *Edge) GiveUp(target string) { e.table.GiveUp(target) }

// Reorder sorts the ways to the tunnels behind faces anew, as Table.Reorder does.
func (e *Edge) Reorder(faces ...routing.Face) { e.table.Reorder(faces...) }

// Serves reports whether there is an endpoint of a target.
func (e *Edge) Serves(target string) bool { return e.table.Serves(target) }

// Endpoints returns all endpoints that are served, by target.
func (e *Edge) Endpoints() []*routing.Endpoint { return e.table.Endpoints() }

// Served counts the endpoints that are served, by type.
func (e *Edge) Served() map[string]int { return e.table.Served() }

// Invitations are the faces of the private tunnels that let a guest in, as
// Table.Invitations has them.
func (e *Edge) Invitations(g visitor.Guest, instance string) []routing.Face {
	return e.table.Invitations(g, instance)
}
