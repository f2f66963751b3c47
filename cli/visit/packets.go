package visit

import (
	"context"
	"fmt"
	"net"
	"sync"

	"adit/cli/stdio"
	"adit/internal/udpflow"
	"adit/internal/visible"
)

// servePackets leads the packets that arrive on conn to the tunnel until ctx ends, with a separate
// connection to the daemon for each sender.
func servePackets(ctx context.Context, std *stdio.Streams, w *way, tunnel string, conn *net.UDPConn) error {
	var mu sync.Mutex
	said := "" // of what is in the way; it is tried again and again
	note := func(fault string) (fresh bool) {
		mu.Lock()
		defer mu.Unlock()
		fresh = fault != said
		said = fault
		return fresh
	}
	return udpflow.Serve(ctx, conn, udpflow.Config{
		Open: func(ctx context.Context, answer func([][]byte)) (udpflow.Way, error) {
			by, err := w.to(ctx, tunnel, w.client.VisitUDP)
			if err != nil {
				return nil, err
			}
			return udpflow.NewFramed(by, answer), nil
		},
		Opened: func() { note("") },
		Failed: func(err error) {
			if !note(err.Error()) {
				return
			}
			fmt.Fprintf(std.Err, "adit: could not forward packets to %s: %s\n", visible.Text(tunnel), visible.Text(err.Error()))
		},
	})
}
