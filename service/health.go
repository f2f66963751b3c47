package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"adit/internal/discovery"
	"adit/internal/paths"
	"adit/localapi"
)

// Health is the daemon's answer to the probe.
type Health struct {
	Address string
	Version string
}

// Probe asks the daemon that runs as the service whether it is well. Its address comes from the
// runtime.json that it publishes for everybody. If a service always publishes one, its absence
// means that none is running, and whoever answers at the usual address is another daemon, usually a
// person's own.
func Probe(ctx context.Context) (Health, error) {
	folders := []string{paths.Public()}
	if dir := os.Getenv(EnvRun); dir != "" {
		folders = []string{dir}
	}
	h, path := Health{Address: localapi.DefaultListen}, localapi.HealthPath
	switch info, err := discovery.Find(folders); {
	case err == nil:
		h, path = Health{Address: info.ConnectAddr}, info.HealthPath
	case tellsEverybody:
		return Health{}, fmt.Errorf("find where the service's daemon answers: %w", err)
	}
	version, err := versionAt(ctx, h.Address, path)
	if err != nil {
		return Health{}, fmt.Errorf("ask the daemon at %s: %w", h.Address, err)
	}
	h.Version = version
	return h, nil
}

// errForeign is the error of versionAt if a program other than a daemon answers.
var errForeign = errors.New("something else answers there")

// versionAt returns the version of the daemon whose probe is at addr and path.
func versionAt(ctx context.Context, addr, path string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return "", err
	}
	// No proxy: the daemon is on this machine. No keep-alive: the daemon may be about to stop.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var body struct{ Status, Version, Service string }
	err = json.NewDecoder(io.LimitReader(resp.Body, 4<<10)).Decode(&body)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil || resp.StatusCode != http.StatusOK || body.Status != "ok" || body.Service != "" { // a relay's console names itself
		return "", errForeign
	}
	return body.Version, nil
}

// occupant says who has the port of addr that the daemon cannot get.
func occupant(ctx context.Context, addr string) string {
	version, err := versionAt(ctx, discovery.ConnectAddr(addr), localapi.HealthPath)
	switch {
	case err == nil:
		return fmt.Sprintf("by adit %s, which runs already (`adit status`); end that one", version)
	case errors.Is(err, context.DeadlineExceeded):
		return "by what does not answer, another program or an adit that hangs; end it"
	}
	return "by another program; end that"
}
