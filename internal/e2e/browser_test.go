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

// browser returns what runs a script of the frontend, by its name and with more
// of an environment, and returns what it printed. Without Chromium or what npm
// brings there is no test.
func browser(t *testing.T) func(script string, env ...string) string {
	t.Helper()
	require.Tool(t, "chromium", "chromium-browser")
	return frontend(t)
}

// otherBrowser does the same with Firefox or with WebKit, which needs a screen.
func otherBrowser(t *testing.T, name string) func(script string, env ...string) string {
	t.Helper()
	if name == "firefox" {
		require.Tool(t, "firefox-esr")
	} else {
		require.Tool(t, "WebKitWebDriver")
		require.Tool(t, "Xvfb")
	}
	run := frontend(t)
	return func(script string, env ...string) string {
		t.Helper()
		return run(script, append(env, "ADIT_BROWSER="+name)...)
	}
}

// frontend returns what runs a script of the frontend, whatever it starts.
func frontend(t *testing.T) func(script string, env ...string) string {
	t.Helper()
	npm := require.Tool(t, "npm")
	frontend := filepath.Join("..", "..", "frontend")
	if _, err := os.Stat(filepath.Join(frontend, "node_modules")); err != nil {
		require.Missing(t, "run npm ci in frontend first: %v", err)
	}
	return func(script string, env ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, npm, "run", "--silent", script)
		cmd.Dir = frontend
		cmd.WaitDelay = 5 * time.Second // a browser that outlives npm holds its output
		cmd.Env = append(cleanEnv(), env...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("npm run %s: %v\n%s%s", script, err, out, &stderr)
		}
		return string(out)
	}
}

// TestPersonInABrowser goes the way of a newcomer in Chromium: the first run
// asks for the token, a tunnel is made by the form, and its URL answers.
func TestPersonInABrowser(t *testing.T) {
	browse := browser(t)
	relay := newRelay(t)
	agent := newAgent(t)
	browse("e2e:real",
		"ADIT_WEB_UI=http://"+agent.listen,
		"ADIT_AUTH_TOKEN="+relay.client("laptop"),
		fmt.Sprintf("ADIT_ORIGIN_PORT=%d", newOrigin(t)),
	)
	agent.awaitConnected()
}

// TestOperatorInABrowser goes the way of a new operator in Chromium: the set-up
// code makes the first account, and the token that the page shows connects a
// daemon.
func TestOperatorInABrowser(t *testing.T) {
	browse := browser(t)
	relay := newRelay(t)
	code, err := os.ReadFile(filepath.Join(relay.dir, "setup_code"))
	if err != nil {
		t.Fatal(err)
	}
	token := browse("e2e:console", "ADIT_CONSOLE=http://"+relay.console, "ADIT_SETUP_CODE="+strings.TrimSpace(string(code)))
	newAgent(t).configure(strings.TrimSpace(token))
}
