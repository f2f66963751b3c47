// Command standin is the program adit with a daemon whose state is set by a test: POST /test takes
// the status and the endpoints that the local API then shows, and GET /test returns the commands
// that it received. The tray and the command line in it are the real ones.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"adit/cli"
	"adit/internal/buildinfo"
	"adit/internal/discovery"
	"adit/internal/paths"
	"adit/localapi/client"
	"adit/service"
)

func main() {
	env := cli.System()
	env.Daemon = func(ctx context.Context, httpListen string) error {
		return service.Main(ctx, func(ctx context.Context, ready func()) error { return serve(ctx, httpListen, ready) })
	}
	os.Exit(cli.Run(context.Background(), env, cli.Args(os.Args)))
}

// daemon is what the test has set.
type daemon struct {
	mu        sync.Mutex
	status    client.Status     // guarded
	endpoints []client.Endpoint // guarded
	orders    []string          // guarded
	watchers  map[chan struct{}]bool
	address   string
}

func serve(ctx context.Context, listen string, ready func()) error {
	if listen == "" {
		listen = "127.0.0.1:37271"
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	ready()
	d := &daemon{watchers: map[chan struct{}]bool{}, address: listener.Addr().String()}
	d.status = client.Status{State: "unconfigured", Version: buildinfo.Get().Version, PID: os.Getpid(), StartedAt: time.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"status": "ok", "version": buildinfo.Get().Version})
	})
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { d.reply(w, func() any { return d.status }) })
	mux.HandleFunc("GET /api/v1/endpoints", func(w http.ResponseWriter, _ *http.Request) {
		d.reply(w, func() any { return map[string]any{"items": d.endpoints} })
	})
	for _, order := range []string{"pause", "resume", "reconnect"} {
		mux.HandleFunc("POST /api/v1/"+order, func(w http.ResponseWriter, _ *http.Request) {
			d.change(func() {
				d.orders = append(d.orders, order)
				d.status.State = map[string]string{"pause": "paused"}[order]
				if d.status.State == "" {
					d.status.State = "connected"
				}
			})
			d.reply(w, func() any { return d.status })
		})
	}
	mux.HandleFunc("POST /api/v1/login-links", func(w http.ResponseWriter, _ *http.Request) {
		d.reply(w, func() any { return client.LoginLink{URL: "http://" + d.address + "/"} })
	})
	mux.HandleFunc("GET /api/v1/events", d.events)
	mux.HandleFunc("GET /test", func(w http.ResponseWriter, _ *http.Request) { d.reply(w, func() any { return d.orders }) })
	mux.HandleFunc("POST /test", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Status    client.Status
			Endpoints []client.Endpoint
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		d.change(func() { d.status, d.endpoints = in.Status, in.Endpoints })
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a stand-in") })

	info := discovery.New(listener.Addr(), time.Now())
	for _, dir := range []string{paths.Service().State, os.Getenv(service.EnvRun)} {
		if dir != "" {
			if err := discovery.Write(dir, info); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			defer func() { _ = discovery.Remove(dir, info) }()
		}
	}
	server := &http.Server{Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (d *daemon) reply(w http.ResponseWriter, data func() any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"data": data()})
}

func (d *daemon) change(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	for w := range d.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (d *daemon) events(w http.ResponseWriter, r *http.Request) {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	d.mu.Lock()
	d.watchers[changed] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers, changed)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	for id := 1; ; id++ {
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
		d.mu.Lock()
		data, err := json.Marshal(d.status)
		d.mu.Unlock()
		if err != nil {
			return
		}
		fmt.Fprintf(w, "id: %d\nevent: status\ndata: %s\n\n", id, data)
		w.(http.Flusher).Flush()
	}
}
