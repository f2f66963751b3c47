package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestOperatorInABrowser goes the way of a new operator in Chromium: the set-up
// code makes the first account, and the token that the page shows connects a
// daemon.
func TestOperatorInABrowser(t *testing.T) {
	npm := require.Tool(t, "npm")
	require.Tool(t, "chromium", "chromium-browser")
	frontend := filepath.Join("..", "..", "frontend")
	if _, err := os.Stat(filepath.Join(frontend, "node_modules")); err != nil {
		require.Missing(t, "run npm ci in frontend first: %v", err)
	}
	relay := newRelay(t)
	code, err := os.ReadFile(filepath.Join(relay.dir, "setup_code"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "run", "--silent", "e2e:console")
	cmd.Dir = frontend
	cmd.Env = append(cleanEnv(), "ADIT_CONSOLE=http://"+relay.console, "ADIT_SETUP_CODE="+strings.TrimSpace(string(code)))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("npm run e2e:console: %v\n%s%s", err, out, &stderr)
	}
	newAgent(t).configure(strings.TrimSpace(string(out)))
}
