package definition

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"unicode/utf8"

	"adit/internal/visible"
	"adit/localapi/client"
)

// pathFlag collects paths that lead to their own local services: /api=8080, /api=host:port or
// /api=https://host:port. ",strip" after it removes the path from requests to the service, and
// ",host=NAME" sets the Host that it sees. An empty flag means that there are none.
type pathFlag struct{ paths []client.TunnelPath }

// String implements pflag.Value; there is no default to show.
func (f *pathFlag) String() string { return "" }

// Type implements pflag.Value.
func (f *pathFlag) Type() string { return "/PATH=PORT" }

// Set implements pflag.Value.
func (f *pathFlag) Set(text string) error {
	if f.paths == nil {
		f.paths = []client.TunnelPath{}
	}
	if text == "" {
		return nil
	}
	if !utf8.ValidString(text) {
		return errNotUTF8
	}
	text, p := pathWords(text)
	if strings.HasSuffix(text, ",host=") {
		return errors.New("host= is empty; give a Host, such as host=app.local")
	}
	at := strings.LastIndexByte(text, '=') // a path may have one, a service has none
	if at < 0 || !strings.HasPrefix(text, "/") {
		return errors.New("it must be a path and its local service, such as /api=8080, /api=HOST:PORT or /api=https://HOST:PORT; append ,strip to remove the path from requests, and ,host=NAME to set their Host header")
	}
	p.Path = text[:at]
	local, err := parseLocal(text[at+1:])
	if err != nil {
		return err
	}
	p.LocalScheme, p.LocalIP, p.LocalPort = client.LocalScheme(local.scheme), local.ip, local.port
	for _, o := range f.paths {
		if o.Path == p.Path {
			return fmt.Errorf("%s is given twice", p.Path)
		}
	}
	f.paths = append(f.paths, p)
	return nil
}

// pathWords parses the options after a path and its service.
func pathWords(text string) (rest string, p client.TunnelPath) {
	for {
		at := strings.LastIndexByte(text, ',')
		if at < 0 {
			return text, p
		}
		host, isHost := strings.CutPrefix(text[at:], ",host=")
		switch {
		case text[at:] == ",strip" && !p.Strip:
			p.Strip = true
		case isHost && host != "" && p.HostHeader == "":
			p.HostHeader = host
		default:
			return text, p
		}
		text = text[:at]
	}
}

// PathText returns a path and where it leads.
func PathText(p client.TunnelPath) string {
	to := net.JoinHostPort(p.LocalIP, strconv.Itoa(p.LocalPort))
	if p.LocalScheme != "" && p.LocalScheme != client.LocalSchemeHTTP {
		to = string(p.LocalScheme) + "://" + to
	}
	text := p.Path + " -> " + to
	if p.Strip {
		text += ", without the path"
	}
	if p.HostHeader != "" {
		text += ", as " + p.HostHeader
	}
	return text
}

// writePaths writes a row for each path.
func writePaths(w io.Writer, paths []client.TunnelPath) {
	for _, p := range paths {
		fmt.Fprintf(w, "Path\t%s\n", visible.Text(PathText(p)))
	}
}
