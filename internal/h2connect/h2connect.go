// Package h2connect enables extended CONNECT (RFC 8441) in net/http's HTTP/2 server, which
// WebSocket over HTTP/2 needs. net/http supports it, but only an environment setting turns it on,
// which is read when net/http is initialised; see docs/decisions/0007-websocket-over-http2.md.
//
// This package must be initialised before net/http. It imports only os. Among the packages that are
// ready, the one whose path sorts first is initialised next (The Go Programming Language
// Specification, Package initialization), and "adit/internal/h2connect" sorts before "net/http".
package h2connect

import "os"

const setting = "http2xconnect=1"

var before, was = os.LookupEnv("GODEBUG")

func init() {
	if before != "" {
		_ = os.Setenv("GODEBUG", before+","+setting)
	} else {
		_ = os.Setenv("GODEBUG", setting)
	}
}

// Restore restores the environment, so that no child process inherits the setting. It is for
// packages that import net/http: by then, the setting has been read.
func Restore() {
	if was {
		_ = os.Setenv("GODEBUG", before)
	} else {
		_ = os.Unsetenv("GODEBUG")
	}
}
