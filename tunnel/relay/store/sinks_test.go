package store

import (
	"errors"
	"strings"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestSinksAreSealed checks that with a secret, nobody who reads the cluster obtains what
// sinks authenticate with, and that the first node with a secret seals what was stored without
// one.
func TestSinksAreSealed(t *testing.T) {
	urls := []string{natstest.Start(t).URL()}
	const document = `{"type":"webhook","url":"https://siem.example/x","secret":"hush-hush"}`
	plain := openAt(t, Config{URLs: urls})
	if err := plain.Sinks.Set(t.Context(), "old", []byte(document), nil); err != nil {
		t.Fatal(err)
	}
	before, _ := plain.Sinks.Get("old")
	for _, name := range []string{SettingAuthority, SettingAdminTokenHash} { // no backup is without them
		if err := plain.Settings.Put(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	sealing := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	if err := sealing.Sinks.Set(t.Context(), "new", []byte(document), nil); err != nil {
		t.Fatal(err)
	}
	other := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	wrong := openAt(t, Config{URLs: urls, Secret: []byte("guess")})
	for _, name := range []string{"old", "new"} {
		e, err := bucketOf(t, plain, "sinks").Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(e.Value()); strings.Contains(text, "hush") || strings.Contains(text, "siem") {
			t.Errorf("%s is stored as %s", name, text)
		}
		for _, s := range []*Store{sealing, other} {
			if v, ok := s.Sinks.Get(name); !ok || v.Fault != nil || string(v.Document) != document || v.Sealed != nil {
				t.Errorf("%s is read as %+v", name, v)
			}
		}
		eventually(t, "who has no secret has word of it", func() bool { v, ok := plain.Sinks.Get(name); return ok && v.Fault != nil })
		if v, _ := plain.Sinks.Get(name); !errors.Is(v.Fault, errNoSecret) || v.Document != nil {
			t.Errorf("without a secret %s is read as %+v", name, v)
		}
		if v, _ := wrong.Sinks.Get(name); v.Fault == nil || v.Document != nil {
			t.Errorf("with another secret %s is read as %+v", name, v)
		}
	}
	if v, _ := other.Sinks.Get("old"); !v.Changed.Equal(before.Changed) {
		t.Error("a sink that was sealed counts as changed")
	}
	if _, err := plain.Backup(t.Context()); err == nil {
		t.Error("a backup leaves out what it cannot read")
	}
	b, err := other.Backup(t.Context())
	if err != nil || len(b.Sinks) != 2 {
		t.Fatalf("%d sinks in the backup, %v", len(b.Sinks), err)
	}
	again := openAt(t, Config{Secret: []byte("another")})
	if err := again.Restore(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if v, _ := again.Sinks.Get("new"); string(v.Document) != document {
		t.Errorf("restored as %+v", v)
	}
	if e, err := bucketOf(t, again, "sinks").Get(t.Context(), "new"); err != nil || strings.Contains(string(e.Value()), "hush") {
		t.Errorf("restored as %s, %v", e.Value(), err)
	}
}
