package console

import (
	"strings"
	"time"

	"adit/tunnel/relay/audit"
)

// AuditQuestion is a question to the audit log. Zero fields ask for everything.
type AuditQuestion struct {
	Before                uint64    // a number of an entry
	Since, Until          time.Time // from this on, and before that
	Action, Actor, Target string    // Action is a prefix; Actor a name or a kind
	Text                  string    // in what an entry shows, in any case
	Limit                 int
}

// maxAuditText is in bytes. Names, addresses and domains are shorter.
const maxAuditText = 256

// Finds reports whether the question asks for an entry, wherever it stands.
func (q AuditQuestion) Finds(e audit.Entry) bool {
	switch {
	case !q.Since.IsZero() && e.Time.Before(q.Since), !q.Until.IsZero() && !e.Time.Before(q.Until):
		return false
	case !strings.HasPrefix(e.Action, q.Action), q.Target != "" && e.Target != q.Target:
		return false
	case q.Actor != "" && e.Actor.Name != q.Actor && e.Actor.Kind != q.Actor:
		return false
	case q.Text == "":
		return true
	}
	text := strings.ToLower(q.Text)
	for _, shown := range []string{e.Action, e.Target, e.Actor.Name, e.Actor.Kind, e.Actor.Address, string(e.Detail)} {
		if strings.Contains(strings.ToLower(shown), text) {
			return true
		}
	}
	return false
}

// AuditPage is a part of the audit log, newest first. Where Next is not zero there
// is more to look through before that entry, also if Items has none.
type AuditPage struct {
	Items []audit.Entry `json:"items"`
	Next  uint64        `json:"next,omitempty"`
}
