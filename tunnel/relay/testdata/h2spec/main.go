// Command h2spec runs all cases of github.com/summerwind/h2spec against a server whose
// name is resolved by the test's own DNS server.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	var c config.Config
	flag.StringVar(&c.Host, "host", "", "name of the server")
	flag.IntVar(&c.Port, "port", 0, "port of the server")
	flag.BoolVar(&c.TLS, "tls", false, "by TLS")
	flag.StringVar(&c.JUnitReport, "report", "", "file for the results")
	flag.DurationVar(&c.Timeout, "timeout", 2*time.Second, "wait for an answer")
	resolver := flag.String("dns", "", "host:port of the DNS server")
	flag.Parse()
	c.Path, c.MaxHeaderLen, c.Strict, c.Insecure, c.Sections = "/", 4000, true, true, flag.Args()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", *resolver)
	}}
	// Failing cases are in the report.
	if _, err := h2spec.Run(&c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
