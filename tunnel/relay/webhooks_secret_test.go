package relay

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store/claims"
)

// hookOf returns the only webhook in the stored policy of shop.
func hookOf(t *testing.T, r *testRelay) policy.Webhook {
	t.Helper()
	p, _ := r.store.Policies.Get(claims.TargetDomain("shop.relay.test"))
	d, err := policy.ReadStored(p.Document)
	if err != nil || len(d.Webhooks) != 1 {
		t.Fatalf("got %s, %v", p.Document, err)
	}
	return d.Webhooks[0]
}

// TestWebhookSecretsAreKeptAndNotShown edits a policy as forms do, which are not shown
// any secrets.
func TestWebhookSecretsAreKeptAndNotShown(t *testing.T) {
	var log bytes.Buffer
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	o := r.operator()
	set := func(document string) (console.Policy, error) {
		return o.SetPolicy(t.Context(), "shop", []byte(document), nil)
	}
	const first = `{"basic_auth":[{"name":"ann","password":"hush ann"}],"webhooks":[{"path":"/hook","provider":"github","secrets":["hush one","hush two"]}]}`
	if _, err := set(first); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []string{
		`{"rate":9,"basic_auth":[{"name":"ann"}],"webhooks":[{"path":"/hook","provider":"github"}]}`,
		`{"webhooks":[{"path":"/HOOK/","provider":"github"}]}`,
	} {
		p, err := set(edit)
		shown, _ := json.Marshal(p)
		if err != nil || strings.Contains(string(shown), "hush") {
			t.Fatalf("%s: got %s, %v", edit, shown, err)
		}
		if got := hookOf(t, r); len(got.Secrets) != 2 || got.Secrets[1] != "hush two" {
			t.Errorf("%s: kept %d secrets", edit, len(got.Secrets))
		}
	}
	for edit, field := range map[string]string{
		`{"webhooks":[{"path":"/hook","provider":"slack"}]}`:                                                 "webhooks[0].secrets",
		`{"webhooks":[{"path":"/another","provider":"github"}]}`:                                             "webhooks[0].secrets",
		`{"webhooks":[{"path":"/hook","provider":"github"}],"unheard_of":1}`:                                 "unheard_of",
		`{"webhooks":[{"path":"/hook","provider":"github"},{"path":"/hook","provider":"github"}]}`:           "webhooks[1].path",
		`{"webhooks":[{"path":"/hook","provider":"github","secrets":["hush"]}]}`:                             "webhooks[0].secrets[0]",
		`{"webhooks":[{"path":"/hook","provider":"github"}],"basic_auth":[{"name":"eve"}]}`:                  "basic_auth[0].password",
		`{"webhooks":[{"path":"/hook","provider":"github"},{"path":"/x","provider":"github","header":"x"}]}`: "webhooks[1].header",
	} {
		_, err := set(edit)
		if refusal, ok := err.(*console.Error); !ok || refusal.Field != field || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v, want %s at fault", edit, err, field)
		}
	}
	entries, err := o.AuditList(t.Context(), console.AuditQuestion{Limit: 100})
	said, _ := json.Marshal(entries)
	if err != nil || strings.Contains(string(said), "hush") || !strings.Contains(string(said), `"/hook"`) {
		t.Errorf("the audit log has %s, %v", said, err)
	}
	if strings.Contains(log.String(), "hush") {
		t.Errorf("the log has %s", log.String())
	}
}

// TestWebhookSecretThatIsSetMeanwhileIsKept makes two operators change a policy: one a
// secret, and the other, who leaves the secrets as they are, something else.
func TestWebhookSecretThatIsSetMeanwhileIsKept(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	o := r.operator()
	set := func(document string, e console.Expected) {
		t.Helper()
		if _, err := o.SetPolicy(t.Context(), "shop", []byte(document), e); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"webhooks":[{"path":"/hook","provider":"github","secrets":["the first"]}]}`, nil)
	set(`{"rate":9,"webhooks":[{"path":"/hook","provider":"github"}]}`, once(func() {
		set(`{"webhooks":[{"path":"/hook","provider":"github","secrets":["the second"]}]}`, nil)
	}))
	if got := hookOf(t, r); len(got.Secrets) != 1 || got.Secrets[0] != "the second" {
		t.Errorf("the secret is another: the first is %v", got.Secrets[0] == "the first")
	}
	if p, err := o.Policy("shop"); err != nil || p.Policy.Rate != 9 {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestUnreadablePolicyClosesItsTarget stores what a newer relay may store: a policy that
// needs something unknown to this relay.
func TestUnreadablePolicyClosesItsTarget(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("origin"))
	target := claims.TargetDomain("shop.relay.test")
	for _, document := range []string{`[["webhooks","tomorrow"],{}]`, `"c2VhbGVk"`, `null`} {
		if err := s.store.Policies.Set(t.Context(), target, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "everybody is let in", func() bool { status, _ := get(t, s.visitor, s.http); return status == 200 })
		if err := s.store.Policies.Set(t.Context(), target, []byte(document)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nobody is let in by "+document, func() bool { status, _ := get(t, s.visitor, s.http); return status == http.StatusForbidden })
	}
}
