package tunnel

import (
	"context"
	"fmt"
	"strings"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/internal/portrange"
	"adit/localapi/client"
)

// forPorts returns the tunnels for that many ports, starting with those of in. Each has its own
// port, and a name with the port in it. The public ports follow the first one, if there is one.
func forPorts(in client.TunnelCreate, ports int) ([]client.TunnelCreate, error) {
	switch {
	case ports < 1 || ports > portrange.Most:
		return nil, command.Usagef("ports must be 1 to %d", portrange.Most)
	case in.Type != client.TunnelTypeTCP && in.Type != client.TunnelTypeUDP:
		return nil, command.Usagef("--ports is for tcp and udp; give --type, too")
	case !portrange.Fits(ports, in.LocalPort, in.RemotePort):
		return nil, command.Usagef("there are no %d ports from %d upwards", ports, max(in.LocalPort, in.RemotePort))
	}
	var all []client.TunnelCreate
	for n := range ports {
		one := in
		one.LocalPort, one.RemotePort = portrange.Nth(in.LocalPort, n), portrange.Nth(in.RemotePort, n)
		if in.Name != "" {
			one.Name = portrange.Name(in.Name, one.LocalPort)
		}
		all = append(all, one)
	}
	return all, nil
}

// portError says why one of several ports cannot be published, in which case none is.
type portError struct {
	port int
	err  error
	left []string // tunnels that could not be removed again
}

// Error puts the port in front of the explanation of err, which cannot be unwrapped.
func (e *portError) Error() string {
	text := fmt.Sprintf("port %d: %s", e.port, daemon.Explain(e.err))
	if len(e.left) > 0 {
		text += "; of the other ports' tunnels these stay: " + strings.Join(e.left, ", ")
	}
	return text
}

// createAll creates all tunnels or none: if one cannot be created, those created before are removed
// again. The error is a *portError.
func createAll(ctx context.Context, c *client.Client, wanted []client.TunnelCreate) (made []client.Tunnel, err error) {
	for _, in := range wanted {
		t, err := daemon.Patiently(ctx, func() (client.Tunnel, error) { return c.CreateTunnel(ctx, in) })
		if err != nil {
			return nil, &portError{in.LocalPort, daemon.WithoutToken(ctx, c, err), removeAll(ctx, c, made)}
		}
		made = append(made, t)
	}
	return made, nil
}

// removeAll removes tunnels, even if ctx has ended, and returns those that could not be removed.
func removeAll(ctx context.Context, c *client.Client, made []client.Tunnel) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemon.RemoveTimeout)
	defer cancel()
	for _, t := range made {
		_, err := daemon.Patiently(ctx, func() (struct{}, error) { return struct{}{}, c.DeleteTunnel(ctx, t.ID) })
		if err != nil && !client.IsCode(err, client.ErrorCodeNotFound) {
			left = append(left, t.ID)
		}
	}
	return left
}
