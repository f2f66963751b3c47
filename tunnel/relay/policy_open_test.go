package relay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/coder/websocket"

	"adit/tunnel/wire"
)

// TestPasswordEndsWhatIsOpenWithoutIt sets and changes passwords while WebSockets, a
// connection and a flow are open. Exactly those end that were not let in by a password
// that is still valid.
func TestPasswordEndsWhatIsOpenWithoutIt(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), wsEcho(t))
	const patience = 4 * patience // for all of it: passwords are slow to try
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	clients := s.webSocketClients(t)
	open := func(user, password string) map[string]*websocket.Conn {
		t.Helper()
		all := map[string]*websocket.Conn{}
		for name, client := range clients {
			header := http.Header{}
			if user != "" {
				header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
			}
			c, _, err := websocket.Dial(ctx, s.https+"/chat", &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Cleanup(func() { c.CloseNow() })
			all[name] = c
		}
		return all
	}
	lives := func(c *websocket.Conn) error {
		if err := c.Write(ctx, websocket.MessageText, []byte("x")); err != nil {
			return err
		}
		_, _, err := c.Read(ctx)
		return err
	}
	ended := func(who string, all map[string]*websocket.Conn) {
		t.Helper()
		for name, c := range all {
			if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("%s, by %s: the WebSocket lives on", who, name)
			}
		}
	}

	anybody := open("", "")
	tcp, address := echoSite(t, s.testRelay)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	conn.Write([]byte("x"))
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	g := s.agent.mustClaim("udp", wire.Claim{Type: wire.TypeUDP}, "echo")
	flow, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", g.RemotePort))
	if err != nil {
		t.Fatal(err)
	}
	defer flow.Close()
	eventually(t, "the udp visitor is answered", func() bool {
		flow.Write([]byte("x")) // again, if a busy machine has lost it
		flow.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, err := flow.Read(make([]byte, 1))
		return err == nil
	})

	const password = `{"basic_auth":[{"name":"ann","password":"first"}]}`
	s.setPolicy(t, "shop", password)
	s.setPolicy(t, tcp, password)
	s.setPolicy(t, fmt.Sprintf("udp.%d", g.RemotePort), password)
	ended("without a password", anybody)
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection lives on")
	}
	eventually(t, "nobody is there", func() bool {
		for _, ep := range s.edge.Endpoints() {
			if ep.Counters().Open > 0 {
				return false
			}
		}
		return true
	})

	ann := open("ann", "first")
	s.setPolicy(t, "shop", `{"basic_auth":[{"name":"ann"},{"name":"bob","password":"other"}],"deny":["192.0.2.1"]}`)
	bob := open("bob", "other")
	s.setPolicy(t, "shop", `{"basic_auth":[{"name":"ann"}]}`)
	ended("a user who was removed", bob)
	for name, c := range ann {
		if err := lives(c); err != nil {
			t.Errorf("with a password that still holds, by %s: %v", name, err)
		}
	}
	s.setPolicy(t, "shop", `{"basic_auth":[{"name":"ann","password":"second"}],"shadow":true}`)
	for name, c := range ann {
		if err := lives(c); err != nil {
			t.Errorf("in shadow mode, by %s: %v", name, err)
		}
	}
	s.setPolicy(t, "shop", `{"basic_auth":[{"name":"ann"}]}`)
	ended("with an old password", ann)
}
