package store

import (
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestWhatNATSForgotIsWrittenAgain has the server lose an acknowledged revocation and policy
// while a node is running. A node that starts later has both.
func TestWhatNATSForgotIsWrittenAgain(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	s := openAt(t, Config{URLs: []string{server.URL()}})
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	forget := server.Snapshot()
	eventually(t, "the store can be reached", s.Connected)
	eventually(t, "the client is revoked", func() bool {
		_, err := s.Clients.Revoke(t.Context(), "shop")
		return err == nil
	})
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{"deny":["0.0.0.0/0"]}`)); err != nil {
		t.Fatal(err)
	}
	forget()
	eventually(t, "the store can be reached", s.Connected)
	eventually(t, "a node that starts later has both", func() bool {
		later, err := Open(t.Context(), Config{Dir: t.TempDir(), URLs: []string{server.URL()}})
		if err != nil {
			return false
		}
		defer later.Close()
		c, ok := later.Clients.Get("shop")
		_, guarded := later.Policies.Get("domain.a")
		return ok && !c.Active() && guarded
	})
}
