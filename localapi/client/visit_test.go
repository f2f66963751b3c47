package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAVisitIsAConnectionWithTwoEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/visits/nas/ssh" || r.Header.Get("Upgrade") != "adit-visit" || r.Header.Get("Authorization") != "Bearer b" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: adit-visit\r\n\r\nhello\n")
		told, err := io.ReadAll(buf)
		if err != nil {
			t.Error(err)
		}
		conn.Write(told)
	}))
	defer server.Close()
	c := New(server.URL, WithBearer("b"))
	conn, err := c.Visit(testContext(t), "adit://nas/ssh")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "what is said")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "hello\nwhat is said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAVisitCanBeBroken: the service must not take what it has for the whole.
func TestAVisitCanBeBroken(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: adit-visit\r\n\r\n")
		_, err = io.ReadAll(buf)
		ended <- err
	}))
	defer server.Close()
	conn, err := New(server.URL).Visit(testContext(t), "nas/ssh")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "a part")
	_ = conn.Reset()
	if err := <-ended; err == nil {
		t.Error("the service reads an orderly end, want an error")
	}
}

func TestVisitsThatAreRefusedAreTyped(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/visits/nas/open":
			io.WriteString(w, `{"data":{"tunnel":"nas/open","type":"udp"}}`)
		case "/api/v1/invitations":
			io.WriteString(w, `{"data":{"items":[{"tunnel":"nas/ssh","type":"tcp"},{"tunnel":"studio/files","type":"udp"}]}}`)
		case "/api/v1/visits/nas/odd":
			w.WriteHeader(http.StatusOK)
		default:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"code":"relay_rejected","message":"there is none"}}`)
		}
	}))
	defer server.Close()
	c := New(server.URL)
	if list, err := c.Invitations(testContext(t)); err != nil || len(list) != 2 || list[1] != (Invitation{"studio/files", PrivateTypeUDP}) {
		t.Errorf("the invitations are %v, %v", list, err)
	}
	if found, err := c.MayVisit(testContext(t), "nas/open"); err != nil || found != (Invitation{"nas/open", PrivateTypeUDP}) {
		t.Errorf("may visit: %+v, %v", found, err)
	}
	if _, err := c.MayVisit(testContext(t), "nas/ssh"); !IsCode(err, ErrorCodeRelayRejected) {
		t.Errorf("may visit what is refused: %v", err)
	}
	if _, err := c.Visit(testContext(t), "nas/ssh"); !IsCode(err, ErrorCodeRelayRejected) {
		t.Errorf("visit what is refused: %v", err)
	}
	for _, named := range []string{"nas", "nas/ssh/22", "adit://nas/ssh/"} { // a path of its own, to the daemon
		if _, err := c.Visit(testContext(t), named); !IsCode(err, ErrorCodeInvalidParameter) {
			t.Errorf("visit %s, which is no name: %v", named, err)
		}
	}
	if _, err := c.Visit(testContext(t), "nas/odd"); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("visit without a change of protocol: %v", err)
	}
}
