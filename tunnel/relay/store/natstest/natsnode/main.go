// Command natsnode is one server of a NATS cluster, for tests that kill it to imitate a power
// failure. For each line that it reads, it prints one line of JSON: what it knows of its
// streams and their replicas and, for the streams that it leads, the contents of the buckets.
// Its log is written beside its folder.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"streams": known, "led": led(ns, known)}); err != nil {
			return
		}
	}
}

// message describes a message of a bucket, without its value, which may be the hash of a
// secret.
type message struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Removed bool      `json:"removed,omitempty"`
}

// led returns the messages of the buckets that the server leads.
func led(ns *server.Server, known *server.JSInfo) map[string][]message {
	all := map[string][]message{}
	conn, err := nats.Connect("", nats.InProcessServer(ns))
	if err != nil {
		return all
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return all
	}
	for _, account := range known.AccountDetails {
		for _, stream := range account.Streams {
			if stream.Cluster == nil || stream.Cluster.Leader != ns.Name() || !strings.HasPrefix(stream.Name, "KV_") {
				continue
			}
			all[stream.Name] = messages(js, stream.Name)
		}
	}
	return all
}

func messages(js jetstream.JetStream, name string) (list []message) {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil
	}
	for seq := uint64(1); ; {
		m, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
		if err != nil {
			return list
		}
		list = append(list, message{m.Subject, m.Sequence, m.Time, len(m.Data) == 0})
		seq = m.Sequence + 1
	}
}
