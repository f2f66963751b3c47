package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"adit/internal/require"
)

// TestPersonInABrowser goes the way of a newcomer in Chromium: the first run
// asks for the token, a tunnel is made by the form, and its URL answers.
func TestPersonInABrowser(t *testing.T) {
	npm := require.Tool(t, "npm")
	require.Tool(t, "chromium", "chromium-browser")
	frontend := filepath.Join("..", "..", "frontend")
	if _, err := os.Stat(filepath.Join(frontend, "node_modules")); err != nil {
		require.Missing(t, "run npm ci in frontend first: %v", err)
	}
	relay := newRelay(t)
	agent := newAgent(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "run", "--silent", "e2e:real")
	cmd.Dir = frontend
	cmd.Env = append(cleanEnv(),
		"ADIT_WEB_UI=http://"+agent.listen,
		"ADIT_AUTH_TOKEN="+relay.client("laptop"),
		fmt.Sprintf("ADIT_ORIGIN_PORT=%d", newOrigin(t)),
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm run e2e:real: %v\n%s", err, out)
	}
	agent.awaitConnected()
}
