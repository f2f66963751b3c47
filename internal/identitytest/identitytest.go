// Package identitytest runs identity providers for tests: the example from github.com/zitadel/oidc,
// which a test builds from tools.mod, and a stand-in for GitHub.
package identitytest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"adit/internal/freeport"
)

// Program is the program to build.
const Program = "github.com/zitadel/oidc/v3/example/server"

// What a relay is to the provider, and the password of its users, who are
// test-user@localhost and test-user2.
const (
	ClientID     = "web"
	ClientSecret = "secret"
	Password     = "verysecure"
)

// patience is how long the provider may take to listen.
const patience = time.Minute

// Start runs the built program until the test ends, and returns its issuer. callback is where it
// sends people back after they have signed in.
func Start(tb testing.TB, program, callback string) string {
	tb.Helper()
	port := freeport.Get(tb)
	log, err := os.Create(filepath.Join(tb.TempDir(), "provider.log"))
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), program)
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", port), "REDIRECT_URI="+callback)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); tb.Failed() {
			tb.Logf("the provider's log:\n%s", text)
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return fmt.Sprintf("http://localhost:%d/", port)
		}
		if time.Now().After(end) {
			tb.Fatalf("the provider does not listen: %v", err)
		}
	}
}
