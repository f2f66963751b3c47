package store

import (
	"encoding/json"
	"strings"
	"testing"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/natstest"
)

// TestAStoreThatHasLostAPartIsNotOpened matters because without the clients, their names would
// be released and their policies removed, and a tunnel without its policy is open to
// everybody.
func TestAStoreThatHasLostAPartIsNotOpened(t *testing.T) {
	t.Parallel() // most of it is waiting
	url := natstest.Start(t).URL()
	cfg := Config{Dir: t.TempDir(), URLs: []string{url}}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s, err = Open(t.Context(), cfg); err != nil {
		t.Fatalf("with all its parts: %v", err)
	}
	defer s.Close()
	for _, part := range []string{"clients", "policies"} {
		if err := s.engine.JetStream().DeleteKeyValue(t.Context(), "adit_"+part); err != nil {
			t.Fatal(err)
		}
	}
	other := Config{Dir: t.TempDir(), URLs: cfg.URLs}
	for range 2 { // the first has made nothing that lets the second in
		if again, err := Open(t.Context(), other); err == nil {
			again.Close()
			t.Fatal("it was opened")
		} else if !strings.Contains(err.Error(), "clients, policies") || !strings.Contains(err.Error(), "adit relay restore") {
			t.Errorf("got %v", err)
		}
	}
	if err := bucket.Purge(t.Context(), s.Settings.kv, settingParts); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, other)
	if _, ok := again.Clients.Get("shop"); ok {
		t.Error("the client is there")
	}
}

// TestPartsOfANewerVersionAreNoted checks that they are kept.
func TestPartsOfANewerVersionAreNoted(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), URLs: []string{natstest.Start(t).URL()}}
	s := openAt(t, cfg)
	if _, err := s.engine.Bucket(t.Context(), "newer"); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]string{"clients", "newer"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Settings.Put(t.Context(), settingParts, text); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Dir: t.TempDir(), URLs: cfg.URLs})
	if had, err := s.hadParts(t.Context()); err != nil || len(had) != len(parts)+1 {
		t.Errorf("got %q, %v, want also that of the newer version", had, err)
	}
}
