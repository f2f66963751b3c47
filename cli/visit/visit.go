// Package visit contains the command that leads connections on this machine to private tunnels of
// other clients, and lists the tunnels that can be visited.
package visit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/loopback"
	"adit/internal/visible"
	"adit/localapi/client"
)

// Command is adit visit.
func Command(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var piped bool
	cmd := &cobra.Command{
		Use:   "visit [CLIENT/NAME [PORT]]",
		Short: "Connect to a private tunnel of another client",
		Long: `Connect to a private tunnel of another client of the relay that allows this one.
Until Ctrl-C, programs on this machine reach the tunnel's local service at PORT
of 127.0.0.1; without PORT, a free one is chosen. For a tunnel of type udp, PORT
is a UDP port.

On the other machine, as the client nas:

  adit tunnel create 22 --mode private --domain ssh --visitor laptop

With --stdio, ssh needs no port:

  ssh -o ProxyCommand='adit visit nas/ssh --stdio' me@nas

To make it permanent, declare a [[visit]] in adit.toml, with tunnel and listen,
and type = "udp" for a udp tunnel. Without CLIENT/NAME, this command lists the
declared visits and the other private tunnels that this client may visit.`,
		Example: `  adit visit
  adit visit nas/ssh 2222
  adit visit nas/ssh --stdio`,
		Args: command.Args(0, 2, "CLIENT/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if piped {
					return command.Usagef("say which private tunnel to visit, for example `adit visit nas/ssh --stdio`")
				}
				return list(cmd.Context(), std, find)
			}
			port := ""
			if len(args) > 1 {
				port = args[1]
			}
			if piped && port != "" {
				return command.Usagef("with --stdio, no port can be given")
			}
			listen := "127.0.0.1:0"
			if port != "" {
				addr, err := loopback.Parse(port)
				if err != nil {
					return command.Usagef("%q %v", port, err)
				}
				listen = addr.String()
			}
			return withDaemon(cmd.Context(), find, func(w *way) error {
				if piped {
					return once(cmd.Context(), std, w.client, args[0])
				}
				return many(cmd.Context(), std, w, args[0], listen)
			})
		},
	}
	cmd.ValidArgsFunction = complete(find)
	cmd.Flags().BoolVar(&piped, "stdio", false, "connect standard input and output, such as for ssh's ProxyCommand")
	return cmd
}

// withDaemon visits with the running daemon, or with one that runs for the duration of the visit.
func withDaemon(ctx context.Context, find *daemon.Finder, visit func(*way) error) error {
	c, own, err := find.ClientOrEmbedded(ctx, "adit visit")
	if err != nil {
		return err
	}
	return cmp.Or(visit(&way{client: c, own: own}), own.End())
}

// once connects standard input and output to the tunnel, until the tunnel's side has ended.
func once(ctx context.Context, std *stdio.Streams, c *client.Client, tunnel string) error {
	conn, err := c.Visit(ctx, tunnel)
	if err != nil {
		return daemon.WithoutToken(ctx, c, err)
	}
	defer conn.Close()
	// An interruption is not a regular end: the service would take what it has received for
	// complete.
	defer context.AfterFunc(ctx, func() { _ = conn.Reset() })()
	go func() { // nothing ends a read of standard input: it is left to the program's end
		_, _ = io.Copy(conn, std.In)
		_ = conn.CloseWrite()
	}()
	n, err := io.Copy(std.Out, conn)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if read := new(net.OpError); n == 0 && errors.As(err, &read) && read.Op == "read" {
		return fmt.Errorf("%s closed the connection before sending anything; ask its owner whether the local service is running", tunnel)
	}
	return fmt.Errorf("the connection to %s broke: %w", tunnel, err)
}

// many leads every connection to the address listen to the tunnel, until ctx ends.
func many(ctx context.Context, std *stdio.Streams, w *way, tunnel, listen string) error {
	found, err := w.client.MayVisit(ctx, tunnel)
	if err != nil {
		return daemon.WithoutToken(ctx, w.client, err)
	}
	if w.found, err = w.client.Status(ctx); err != nil {
		return err
	}
	said := struct {
		Tunnel string             `json:"tunnel"`
		Type   client.PrivateType `json:"type"`
		Listen string             `json:"listen"`
	}{tunnel, found.Type, ""}
	say := func(at net.Addr) error {
		said.Listen = at.String()
		return std.Print(said, func(w io.Writer) {
			fmt.Fprintf(w, "%s connects to %s until Ctrl-C.\n", said.Listen, visible.Text(tunnel))
		})
	}
	if found.Type == client.PrivateTypeUDP {
		conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", listen)
		if err != nil {
			return listenError(tunnel, err)
		}
		defer conn.Close()
		if err := say(conn.LocalAddr()); err != nil {
			return err
		}
		return servePackets(ctx, std, w, tunnel, conn.(*net.UDPConn))
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return listenError(tunnel, err)
	}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	defer ln.Close()
	if err := say(ln.Addr()); err != nil {
		return err
	}
	return serve(ctx, std, w, tunnel, ln)
}

func listenError(tunnel string, err error) error {
	return fmt.Errorf("listen for visits of %s: %w; choose a different port", tunnel, err)
}

// acceptAgain is how long to wait before accepting the next connection if accepting one has failed.
const acceptAgain = 200 * time.Millisecond

// serve leads every connection that ln accepts to the tunnel, until ctx ends, which closes ln.
func serve(ctx context.Context, std *stdio.Streams, w *way, tunnel string, ln net.Listener) error {
	var guests sync.WaitGroup
	defer guests.Wait()
	said := false
	for {
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // as where too many files are open: those who are there will leave
			if !said {
				fmt.Fprintf(std.Err, "adit: cannot accept connections now, trying again: %s\n", visible.Text(err.Error()))
			}
			said = true
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(acceptAgain):
			}
			continue
		}
		said = false
		guests.Go(func() {
			if err := visitFor(ctx, w, tunnel, conn.(*net.TCPConn)); err != nil && ctx.Err() == nil {
				fmt.Fprintf(std.Err, "adit: could not connect a visitor to %s: %s\n", visible.Text(tunnel), visible.Text(err.Error()))
			}
		})
	}
}

// visitFor leads one connection to the tunnel. Its error is about the way there.
func visitFor(ctx context.Context, w *way, tunnel string, local *net.TCPConn) error {
	defer local.Close()
	conn, err := w.to(ctx, tunnel, w.client.Visit)
	if err != nil {
		_ = local.SetLinger(0)
		return err
	}
	defer conn.Close()
	abort := sync.OnceFunc(func() {
		_ = local.SetLinger(0) // it is cut, not ended
		local.Close()
		_ = conn.Reset()
	})
	defer context.AfterFunc(ctx, abort)()
	var inward sync.WaitGroup
	inward.Go(func() {
		if _, err := io.Copy(conn, local); err != nil || conn.CloseWrite() != nil {
			abort()
		}
	})
	if _, err := io.Copy(local, conn); err != nil || local.CloseWrite() != nil {
		abort()
	}
	inward.Wait()
	return nil
}
