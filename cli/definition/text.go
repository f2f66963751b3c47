package definition

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"adit/cli/localtime"
	"adit/internal/visible"
	"adit/localapi/client"
)

// LocalText returns the address of a tunnel's local service.
func LocalText(t client.Tunnel) string {
	return net.JoinHostPort(t.LocalIP, strconv.Itoa(t.LocalPort))
}

// Write writes all details of a tunnel.
func Write(w io.Writer, t client.Tunnel) {
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, visible.Text(value))
		}
	}
	row("URL", t.PublicURL)
	row("Local", LocalText(t))
	row("State", string(t.State))
	row("Error", t.Error)
	row("Name", t.Name)
	row("Type", string(t.Type)+", "+string(t.Mode))
	row("Domain", t.Domain)
	if t.RemotePort != 0 {
		row("Port", strconv.Itoa(t.RemotePort))
	}
	row("Host header", t.HostHeader)
	writeHeaders(w, "Request header", t.RequestHeaders)
	writeHeaders(w, "Response header", t.ResponseHeaders)
	writePaths(w, t.Paths)
	row("Visitors", strings.Join(t.Visitors, ", "))
	row("PROXY protocol", string(t.ProxyProtocol))
	if t.Declared {
		row("Declared", "in adit.toml; change it there")
	}
	if t.Ephemeral {
		row("Ephemeral", "gone when the daemon ends")
	}
	row("Created", localtime.Text(t.CreatedAt))
	row("ID", t.ID)
}

// ShortLocal returns the address of a local service as commands accept it: just the port if it is
// on this machine.
func ShortLocal(text string) string { return strings.TrimPrefix(text, "127.0.0.1:") }
