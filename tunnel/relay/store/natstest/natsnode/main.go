// Command natsnode is one server of a NATS cluster, for tests that kill it as a
// power failure would.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"adit/tunnel/relay/store/natstest"
)

func main() {
	name := flag.String("name", "", "the server's name")
	dir := flag.String("dir", "", "its folder")
	port := flag.Int("port", 0, "for clients")
	route := flag.Int("route", 0, "for the other servers")
	routes := flag.String("routes", "", "host:port of all servers, with commas")
	flag.Parse()
	opts := natstest.Options(*name, *dir, "127.0.0.1", *port, *route, strings.Split(*routes, ","))
	ns, err := server.NewServer(&opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ns.Start()
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	<-end
	ns.Shutdown()
}
