package console

import "context"

// Kinds of actors.
const (
	KindAdminToken = "admin_token"
	KindAPIToken   = "api_token"
	KindUser       = "user"
)

// Actor is who asks for something.
type Actor struct {
	Kind    string `json:"kind"`
	Name    string `json:"name,omitempty"` // of the account or API token
	Address string `json:"address,omitempty"`
}

type actorKey struct{}

// WithActor returns a context that says who asks.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who asks; the zero Actor outside of a request to the console.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}
