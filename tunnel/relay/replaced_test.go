package relay

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// TestSessionGoesOnWhereTheNewerDidNotLast makes an agent try a newer session and give it
// up, for example DTLS beside TLS on a network that blocks UDP half of the time. The
// older session is then the agent's again.
func TestSessionGoesOnWhereTheNewerDidNotLast(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	older := connect(t, token, "i1")
	url := older.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop", Ephemeral: true}, startOrigin(t, http.NotFoundHandler())).PublicURL
	newer := connect(t, token, "i1")
	newer.close()
	eventually(t, "the newer session is forgotten", func() bool { return len(r.roster.All()) == 1 })
	key := roster.Agent{Client: older.welcome.ClientID, Instance: "i1"}
	if has := r.roster.Newest(key); has == nil || has.id != older.welcome.SessionID {
		t.Errorf("the agent's session is %v", has)
	}
	if r.gone(key.Client, claims.Holder{Instance: "i1", Key: "k", Ephemeral: true}) {
		t.Error("its name may be another's though it is connected")
	}
	resp, err := r.visitor(t).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	late := time.After(patience)
	for told := false; !told; {
		select {
		case e := <-older.events:
			told = e.Type == wire.EventAccess
		case <-late:
			t.Fatal("it was not told of its visitor")
		}
	}
	older.close()
	eventually(t, "it is away", func() bool {
		away, since := r.roster.Away(key)
		return away && !since.IsZero()
	})
}

// TestReplacedSessionsAreBounded makes an agent connect again and again, with sessions
// that linger. That must not be a way around the limit.
func TestReplacedSessionsAreBounded(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.SessionsPerClient = 2
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	for i := range 10 {
		a := connect(t, token, "i1")
		a.mustClaim(fmt.Sprint("k", i), wire.Claim{Type: wire.TypeHTTP, Domain: fmt.Sprint("shop", i)}, "")
	}
	since := time.Now()
	eventually(t, "those that are too many have ended", func() bool { return len(r.roster.All()) <= 2*2+1 })
	if took := time.Since(since); took > replacedTime/2 {
		t.Errorf("they ended after %v", took)
	}
	connect(t, token, "i1").mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
}
