package store

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestAccountsAreSealed checks that with a secret, nobody who reads the cluster obtains the
// secrets of second factors, and that the first node with a secret seals accounts stored
// without one.
func TestAccountsAreSealed(t *testing.T) {
	urls := []string{natstest.Start(t).URL()}
	const document = `{"name":"ann","totp":"JBSWY3DPEHPK3PXP"}`
	put := func(s *Store, key string, revision uint64) {
		t.Helper()
		if saved, err := s.Operators.Put(t.Context(), key, []byte(document), revision); !saved || err != nil {
			t.Fatalf("put %s: %v, %v", key, saved, err)
		}
	}
	plain := openAt(t, Config{URLs: urls})
	put(plain, "account.old", 0)
	put(plain, "token.x", 0)
	sealing := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	put(sealing, "account.new", 0)
	_, revision, _ := sealing.Operators.Get("account.new")
	put(sealing, "account.new", revision)
	other := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	wrong := openAt(t, Config{URLs: urls, Secret: []byte("guess")})
	for _, key := range []string{"account.old", "account.new"} {
		e, err := bucketOf(t, plain, "operators").Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Value()), "JBSW") || strings.Contains(string(e.Value()), "ann") {
			t.Errorf("%s is stored as %s", key, e.Value())
		}
		for _, s := range []*Store{sealing, other} {
			eventually(t, key+" is read", func() bool { v, _, ok := s.Operators.Get(key); return ok && string(v) == document })
		}
		if v, _, ok := wrong.Operators.Get(key); !ok || strings.Contains(string(v), "JBSW") {
			t.Errorf("with another secret %s is read as %s, %v", key, v, ok)
		}
	}
	if got := other.Operators.List("account."); len(got) != 2 || string(got["account.old"]) != document {
		t.Errorf("listed as %q", got)
	}
	if got := slices.Sorted(maps.Keys(other.Operators.lasting())); len(got) != 3 {
		t.Errorf("a backup would have %q", got)
	}
}
