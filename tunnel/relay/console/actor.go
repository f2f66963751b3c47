package console

import (
	"context"
	"net/http"

	"adit/tunnel/relay/audit"
)

// Actor is who asks for something; it travels in a request's context.
type Actor = audit.Actor

// Kinds of actors that come to the console.
const (
	KindAdminToken = audit.KindAdminToken
	KindAPIToken   = audit.KindAPIToken
	KindUser       = audit.KindUser
)

// recorder is a relay with an audit log.
type recorder interface {
	Record(ctx context.Context, action, target string, detail any)
}

// note writes a change into the audit log, in the name of who asked for it.
func (c *Console) note(r *http.Request, action, target string, detail map[string]any) {
	if log, ok := c.cfg.Relay.(recorder); ok {
		log.Record(r.Context(), action, target, detail)
	}
}
