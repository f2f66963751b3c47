package operator

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"

	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
)

// maxUser limits the length of a user's name, in bytes.
const maxUser = 320

// EndSignIns ends all current sign-ins of a visitor, on all nodes. The visitor may sign
// in again.
func (o *Operator) EndSignIns(ctx context.Context, user string) (console.EndedSignIns, error) {
	user = strings.ToLower(strings.TrimSpace(user))
	switch {
	case user == "" || len(user) > maxUser || strings.ContainsFunc(user, unicode.IsControl):
		return console.EndedSignIns{}, bad(http.StatusBadRequest, "invalid_parameter", "user", "user must be an address or a name, of at most %d bytes", maxUser)
	case o.cfg.SignIn == nil:
		return console.EndedSignIns{}, bad(http.StatusBadRequest, "invalid_parameter", "user", "nobody has signed in: the relay has no identity provider")
	}
	now := time.Now().UTC()
	// An earlier configuration may have allowed longer sessions.
	v := store.EndedSignIns{User: user, At: now, Until: now.Add(config.MaxSession)}
	if err := o.cfg.Store.Ended.Set(ctx, v); err != nil {
		return console.EndedSignIns{}, err
	}
	o.cfg.Log.Info("sign-ins ended by the operator", "user", user)
	o.Record(ctx, "sign_in.end", user, nil)
	return console.EndedSignIns{User: user, EndedAt: now}, nil
}
