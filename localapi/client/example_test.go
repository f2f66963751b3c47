package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"adit/localapi/client"
)

// daemon stands in for a running daemon, so that the examples run anywhere.
func daemon() *httptest.Server {
	answers := map[string]string{
		"GET /healthz":                   `{"status":"ok","version":"v1.4.0"}`,
		"GET /api/v1/status":             `{"data":{"connected":true,"state":"connected","transport":"dtls"}}`,
		"POST /api/v1/tunnels":           `{"data":{"id":"t_1","public_url":"https://shop.relay.example","state":"running"}}`,
		"POST /api/v1/auth/configure":    `{"error":{"code":"invalid_token","message":"not an auth token: a part of it is missing","field":"auth_token"}}`,
		"GET /api/v1/events":             "id: 8\nevent: status\ndata: {\"state\":\"connected\"}\n\nid: 9\nevent: log\ndata: {\"level\":\"info\",\"message\":\"session is up\"}\n\n",
		"DELETE /api/v1/tunnels/{id}":    "",
		"POST /api/v1/tunnels/{id}/stop": `{"data":{"id":"t_1","state":"stopped"}}`,
	}
	mux := http.NewServeMux()
	for pattern, answer := range answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			if pattern == "POST /api/v1/auth/configure" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprint(w, answer)
		})
	}
	return httptest.NewServer(mux)
}

func Example() {
	server := daemon() // a running daemon; client.Discover finds the real one
	defer server.Close()
	ctx := context.Background()

	c := client.New(server.URL)
	status, err := c.Status(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.State, "over", status.Transport)

	tunnel, err := c.CreateTunnel(ctx, client.TunnelCreate{
		Type: client.TunnelTypeHTTPS, LocalPort: 3000, Domain: "shop",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tunnel.PublicURL)
	// Output:
	// connected over dtls
	// https://shop.relay.example
}

func ExampleClient_ConfigureAuth() {
	server := daemon()
	defer server.Close()

	_, err := client.New(server.URL).ConfigureAuth(context.Background(), client.AuthConfigure{AuthToken: "adit_cut"})
	var refusal *client.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Status, refusal.Code, refusal.Field)
		fmt.Println(refusal.Message)
	}
	// Output:
	// 400 invalid_token auth_token
	// not an auth token: a part of it is missing
}

func ExampleClient_Events() {
	server := daemon()
	defer server.Close()

	for event, err := range client.New(server.URL).Events(context.Background(), "") {
		if err != nil {
			fmt.Println("lost, coming back:", err)
			continue
		}
		switch event.Type {
		case client.EventStatus:
			var status client.Status
			if err := event.Into(&status); err == nil {
				fmt.Println(event.ID, status.State)
			}
		case client.EventLog:
			var line client.LogEntry
			if err := event.Into(&line); err == nil {
				fmt.Println(event.ID, line.Level, line.Message)
			}
			return // or go on, for as long as the context lasts
		}
	}
	// Output:
	// 8 connected
	// 9 info session is up
}

func ExampleDiscover() {
	_, _, err := client.Discover(context.Background(), "/nowhere")
	if errors.Is(err, client.ErrNotRunning) {
		fmt.Println("start the daemon first")
	}
	// Output:
	// start the daemon first
}
