package relay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/sink"
	"adit/tunnel/wire"
)

// newsOfClients gives a relay a sink for its news of clients.
func newsOfClients(t *testing.T, r *testRelay) <-chan string {
	t.Helper()
	got := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var batch struct {
			Node   string       `json:"node"`
			Events []sink.Event `json:"events"`
		}
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
			t.Error(err)
		}
		for _, e := range batch.Events {
			got <- strings.TrimSpace(fmt.Sprintf("%s: %s %s %s %s", batch.Node, e.Client.Client, e.Client.State, e.Client.PublicURL, e.Client.Message))
		}
	}))
	t.Cleanup(hook.Close)
	answer[console.Sink](t, r, "PUT", "/api/v1/sinks/news", fmt.Sprintf(`{"type":"webhook","url":%q,"events":["client"]}`, hook.URL))
	return got
}

func awaitNews(t *testing.T, got <-chan string, want string) {
	t.Helper()
	select {
	case news := <-got:
		if news != want {
			t.Fatalf("got %q, want %q", news, want)
		}
	case <-time.After(patience):
		t.Fatalf("%q was not told", want)
	}
}

func TestSinksAreToldOfClients(t *testing.T) {
	t.Parallel() // most of it is waiting
	cfg := testConfig(t.TempDir())
	cfg.Sinks.AllowPrivate, cfg.Nodes.Name = true, "n"
	r := startRelayWith(t, Options{Config: cfg, awayGrace: 200 * time.Millisecond})
	news := newsOfClients(t, r)
	if test := answer[console.SinkTest](t, r, "POST", "/api/v1/sinks/news/test", ""); !test.OK {
		t.Errorf("test: %+v", test)
	}
	awaitNews(t, news, "n: TEST connected")
	token := r.client(t, "shop")
	a := connect(t, token, "i1")
	awaitNews(t, news, "n: shop connected")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
	if err := a.call(http.MethodPost, wire.PathErrors, []wire.AgentError{{Time: time.Now(), Key: "k", Message: "nothing listens"}}, nil); err != nil {
		t.Fatal(err)
	}
	awaitNews(t, news, "n: shop error "+g.PublicURL+" nothing listens")
	if c, err := r.operator().Client("shop"); err != nil || len(c.Errors) != 1 || c.Errors[0].PublicURL != g.PublicURL {
		t.Errorf("the client has the errors %+v (%v), want one of %s", c.Errors, err, g.PublicURL)
	}
	a.close()
	awaitNews(t, news, "n: shop away")
	connect(t, token, "i1")
	awaitNews(t, news, "n: shop connected")
}

// TestOneNodeTellsOfClients connects an agent to one of two nodes, and then to the other.
func TestOneNodeTellsOfClients(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 0)
	c.awayGrace = time.Second
	c.add()
	c.add()
	c.awaitWhole(c.all...)
	news := newsOfClients(t, c.all[0])
	eventually(t, "both have the sink", func() bool {
		_, one := c.all[0].sinks.State("news")
		_, other := c.all[1].sinks.State("news")
		return one && other
	})
	first := "node0"
	if c.all[1].id < c.all[0].id {
		first = "node1"
	}
	token := c.all[0].client(t, "shop")
	eventually(t, "the other knows the client", func() bool { _, ok := c.all[1].store.Clients.Get("shop"); return ok })
	a := connect(t, c.all[0].at(token), "i1")
	awaitNews(t, news, first+": shop connected")
	b := connect(t, c.all[1].at(token), "i1") // it moves, and that is no news
	a.close()
	eventually(t, "the first has the agent no more", func() bool { return c.all[0].roster.Len() == 0 })
	b.close()
	awaitNews(t, news, first+": shop away")
}
