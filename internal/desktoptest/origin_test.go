package desktoptest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// envOrigin makes this test's program a web server, for networks that the test
// itself is not in. It prints its port.
const envOrigin = "ADIT_TEST_ORIGIN"

const originSays = "the page of a service behind a tunnel"

func serveOrigin() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, listener.Addr().(*net.TCPAddr).Port)
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, originSays) }))
}
