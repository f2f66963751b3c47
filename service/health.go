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
	PID     int // 0 if there is no runtime.json
}

// Probe asks the daemon that runs as the service whether it is well. Where it
// listens is in the runtime.json that it keeps for everybody; where a
// service always has one, without it none runs, and who answers at the usual
// address is another daemon, a person's own mostly.
func Probe(ctx context.Context) (Health, error) {
	folders := []string{paths.Public()}
	if dir := os.Getenv(EnvRun); dir != "" {
		folders = []string{dir}
	}
	h, path := Health{Address: localapi.DefaultListen}, localapi.HealthPath
	switch info, err := discovery.Find(folders); {
	case err == nil:
		h, path = Health{Address: info.ConnectAddr, PID: info.PID}, info.HealthPath
	case tellsEverybody:
		return Health{}, fmt.Errorf("find where the service's daemon answers: %w", err)
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
