package console

import (
	"strings"
	"time"

	"adit/tunnel/relay/audit"
)

// AuditQuestion selects entries of the audit log. A zero field selects all.
type AuditQuestion struct {
	Before                uint64    // the number of an entry
	Since, Until          time.Time // Since is inclusive, Until exclusive
	Action, Actor, Target string    // Action is a prefix; Actor a name or a kind
	Text                  string    // contained in what an entry shows, ignoring case
	Limit                 int
}

// maxAuditText is in bytes. Names, addresses and domains are shorter.
const maxAuditText = 256

// Finds reports whether the question selects an entry, regardless of Before.
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

// AuditPage is a part of the audit log, newest first. If Next is not zero, there is more
// to search before that entry, even if Items is empty.
type AuditPage struct {
	Items []audit.Entry `json:"items"`
	Next  uint64        `json:"next,omitempty"`
}
