// Command natsnode is one server of a NATS cluster, for tests that kill it as a
// power failure would. For each line that it reads it prints one of JSON: what it
// knows of its streams and their other copies. Its log is beside its folder.
package main

import (
	"bufio"
	"encoding/json"
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
	opts.NoLog, opts.Logtime, opts.LogFile = false, true, *dir+".log"
	ns, err := server.NewServer(&opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ns.ConfigureLogger()
	ns.Start()
	go tell(ns)
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	<-end
	ns.Shutdown()
}

func tell(ns *server.Server) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		known, err := ns.Jsz(&server.JSzOptions{Streams: true, RaftGroups: true})
		if err != nil {
			fmt.Printf("%q\n", err)
			continue
		}
		if err := json.NewEncoder(os.Stdout).Encode(known); err != nil {
			return
		}
	}
}
