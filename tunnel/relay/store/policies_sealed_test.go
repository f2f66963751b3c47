package store

import (
	"errors"
	"strings"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestPoliciesWithSecretsAreSealed checks that with a secret, nobody who reads the cluster
// obtains the secrets of webhooks, and that the first node with a secret seals what was stored
// without one. Policies without secrets stay unsealed, for versions that do not know of seals.
func TestPoliciesWithSecretsAreSealed(t *testing.T) {
	urls := []string{natstest.Start(t).URL()}
	const document, open = `[["webhooks"],{"webhooks":[{"secrets":["hush-hush"]}]}]`, `{"rate":1}`
	set := func(s *Store, target, document string) {
		t.Helper()
		if err := s.Policies.Set(t.Context(), target, []byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	plain := openAt(t, Config{URLs: urls})
	set(plain, "domain.old", document)
	set(plain, "domain.open", open)
	before, _ := plain.Policies.Get("domain.old")
	for _, name := range []string{SettingAuthority, SettingAdminTokenHash} { // no backup is without them
		if err := plain.Settings.Put(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	sealing := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	set(sealing, "domain.new", document)
	other := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	wrong := openAt(t, Config{URLs: urls, Secret: []byte("guess")})
	for _, target := range []string{"domain.old", "domain.new"} {
		e, err := bucketOf(t, plain, "policies").Get(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(e.Value()); strings.Contains(text, "hush") {
			t.Errorf("%s is stored as %s", target, text)
		}
		for _, s := range []*Store{sealing, other} {
			if v, ok := s.Policies.Get(target); !ok || v.Fault != nil || string(v.Document) != document {
				t.Errorf("%s is read as %+v", target, v)
			}
		}
		eventually(t, "who has no secret has word of it", func() bool { v, ok := plain.Policies.Get(target); return ok && v.Fault != nil })
		if v, _ := plain.Policies.Get(target); !errors.Is(v.Fault, errNoSecret) || v.Document != nil {
			t.Errorf("without a secret %s is read as %+v", target, v)
		}
		if v, _ := wrong.Policies.Get(target); v.Fault == nil || v.Document != nil {
			t.Errorf("with another secret %s is read as %+v", target, v)
		}
	}
	if v, _ := other.Policies.Get("domain.old"); !v.Changed.Equal(before.Changed) {
		t.Error("a policy that was sealed counts as changed")
	}
	if e, err := bucketOf(t, plain, "policies").Get(t.Context(), "domain.open"); err != nil || !strings.Contains(string(e.Value()), open) {
		t.Errorf("a policy without secrets is stored as %s, %v", e.Value(), err)
	}
	told := map[string]string{}
	other.Policies.OnValues(func(target string, v StoredPolicy, _ bool) { told[target] = string(v.Document) })
	if told["domain.new"] != document || told["domain.open"] != open {
		t.Errorf("told of %v", told)
	}
	if _, err := plain.Backup(t.Context()); err == nil {
		t.Error("a backup leaves out what it cannot read")
	}
	b, err := other.Backup(t.Context())
	if err != nil || len(b.Policies) != 3 {
		t.Fatalf("%d policies in the backup, %v", len(b.Policies), err)
	}
	again := openAt(t, Config{Secret: []byte("another")})
	if err := again.Restore(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if v, _ := again.Policies.Get("domain.new"); string(v.Document) != document {
		t.Errorf("restored as %+v", v)
	}
	if e, err := bucketOf(t, again, "policies").Get(t.Context(), "domain.new"); err != nil || strings.Contains(string(e.Value()), "hush") {
		t.Errorf("restored as %s, %v", e.Value(), err)
	}
}
