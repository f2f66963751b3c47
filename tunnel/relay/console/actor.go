package console

import (
	"net/http"

	"adit/tunnel/relay/audit"
)

// Actor is who makes a request. It is stored in the request's context.
type Actor = audit.Actor

// The kinds of actors that use the console.
const (
	KindAdminToken = audit.KindAdminToken
	KindAPIToken   = audit.KindAPIToken
	KindUser       = audit.KindUser
)

// note writes a change into the audit log, in the name of whoever requested it.
func (c *Console) note(r *http.Request, action, target string, detail map[string]any) {
	c.cfg.Relay.Record(r.Context(), action, target, detail)
}
