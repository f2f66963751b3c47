package console

import (
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

// note writes a change into the audit log, in the name of who asked for it.
func (c *Console) note(r *http.Request, action, target string, detail map[string]any) {
	c.cfg.Relay.Record(r.Context(), action, target, detail)
}
