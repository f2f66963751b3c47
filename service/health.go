package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"adit/internal/discovery"
	"adit/internal/paths"
	"adit/localapi"
)

// Health is the answer of the daemon's probe.
type Health struct {
	Address string
	Version string
	PID     int // 0 if the daemon's runtime.json was not readable
}

// Probe asks the daemon that runs as the service whether it is well. Where it
// listens is read from runtime.json; without that, it is asked at the default
// address.
func Probe(ctx context.Context) (Health, error) {
	folders := []string{paths.Public(), paths.Service().State}
	if dir := os.Getenv(EnvRun); dir != "" {
		folders = append([]string{dir}, folders...)
	}
	h := Health{Address: localapi.DefaultListen}
	path := localapi.HealthPath
	if info, err := discovery.Find(folders); err == nil {
		h.Address, path, h.PID = info.ConnectAddr, info.HealthPath, info.PID
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.Address+path, nil)
	if err != nil {
		return Health{}, fmt.Errorf("ask the daemon at %s: %w", h.Address, err)
	}
	// No proxy: the daemon is on this machine. No kept connection: the daemon
	// may be about to stop.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return Health{}, fmt.Errorf("ask the daemon at %s: %w", h.Address, err)
	}
	defer resp.Body.Close()
	var body struct{ Status, Version string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<10)).Decode(&body); err != nil || resp.StatusCode != http.StatusOK || body.Status != "ok" {
		return Health{}, fmt.Errorf("ask the daemon at %s: something else answers there", h.Address)
	}
	h.Version = body.Version
	return h, nil
}
