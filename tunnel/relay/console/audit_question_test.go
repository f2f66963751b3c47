package console

import (
	"testing"
	"time"

	"adit/tunnel/relay/audit"
)

func TestAuditQuestionFindsWhatItAsksFor(t *testing.T) {
	noon := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	e := audit.Entry{
		Time: noon, Actor: audit.Actor{Kind: audit.KindUser, Name: "Ann", Address: "203.0.113.9"},
		Action: "policy.set", Target: "shop.relay.example", Detail: []byte(`{"rate":20}`),
	}
	for _, c := range []struct {
		name string
		q    AuditQuestion
		want bool
	}{
		{"everything", AuditQuestion{}, true},
		{"what its action begins with", AuditQuestion{Action: "policy."}, true},
		{"another action", AuditQuestion{Action: "client."}, false},
		{"its actor's name", AuditQuestion{Actor: "Ann"}, true},
		{"its actor's kind", AuditQuestion{Actor: audit.KindUser}, true},
		{"another actor", AuditQuestion{Actor: "bob"}, false},
		{"its target", AuditQuestion{Target: "shop.relay.example"}, true},
		{"part of its target", AuditQuestion{Target: "shop"}, false},
		{"part of its target as text", AuditQuestion{Text: "SHOP."}, true},
		{"its actor as text", AuditQuestion{Text: "ann"}, true},
		{"its address as text", AuditQuestion{Text: "113.9"}, true},
		{"its details as text", AuditQuestion{Text: `"rate":20`}, true},
		{"a text that it does not have", AuditQuestion{Text: "bob"}, false},
		{"its text and another action", AuditQuestion{Text: "ann", Action: "client."}, false},
		{"from its time on", AuditQuestion{Since: noon}, true},
		{"after it", AuditQuestion{Since: noon.Add(time.Second)}, false},
		{"before its time", AuditQuestion{Until: noon}, false},
		{"until later", AuditQuestion{Since: noon.Add(-time.Hour), Until: noon.Add(time.Second)}, true},
	} {
		if got := c.q.Finds(e); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
