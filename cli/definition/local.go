package definition

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"adit/cli/command"
)

// localService is a local service as a user writes it: 3000, nas.lan:80 or https://nas.lan.
type localService struct {
	scheme string // empty without a URL
	ip     string // empty for a port alone
	port   int
}

// schemePorts are the default ports of URL schemes.
var schemePorts = map[string]int{"http": 80, "h2c": 80, "https": 443}

// parseLocal parses PORT, HOST:PORT for a service that is not on 127.0.0.1, or its URL, as copied
// from a browser. Whether the daemon supports the scheme is left to the daemon.
func parseLocal(text string) (localService, error) {
	if strings.HasPrefix(text, "unix:") || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") {
		return localService{}, command.Usagef("%q is a file; a tunnel needs the port of a local service, such as 3000 or nas.lan:80", text)
	}
	scheme, at, isURL := strings.Cut(text, "://")
	if !isURL {
		scheme, at = "", text
	}
	at = strings.TrimSuffix(at, "/")
	if i := strings.IndexAny(at, "/?#@"); i >= 0 {
		if !isURL {
			return localService{}, command.Usagef("%q has more than a host and a port; write it as %s", text, at[:i])
		}
		bare := at[strings.IndexByte(at, '@')+1:]
		bare, _, _ = strings.Cut(bare, "/")
		return localService{}, command.Usagef("%q has more than a scheme, a host and a port; write it as %s://%s", text, scheme, bare)
	}
	s := localService{scheme: strings.ToLower(scheme)}
	portText := at
	switch named := schemePorts[s.scheme]; {
	case isURL && named != 0 && withoutPort(at):
		s.ip, s.port = strings.Trim(at, "[]"), named
		return s, nil
	case strings.Contains(at, ":") || isURL && at == "":
		var err error
		if s.ip, portText, err = net.SplitHostPort(at); err != nil {
			if colon := strings.LastIndex(at, ":"); colon >= 0 {
				host, last := at[:colon], at[colon+1:]
				if _, ipErr := netip.ParseAddr(host); ipErr == nil {
					return localService{}, command.Usagef("%q is neither a port nor HOST:PORT; put an IPv6 address in brackets: [%s]:%s", at, host, last)
				}
			}
			return localService{}, command.Usagef("%q is neither a port nor HOST:PORT", text)
		}
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || n == 0 {
		return localService{}, command.Usagef("the port must be 1 to 65535, not %q", portText)
	}
	s.port = int(n)
	return s, nil
}

// withoutPort reports whether a URL's host has no port. A bare number is not a host but a port on
// this machine.
func withoutPort(at string) bool {
	if strings.HasPrefix(at, "[") {
		return strings.HasSuffix(at, "]")
	}
	_, err := strconv.ParseUint(at, 10, 64)
	return at != "" && !strings.Contains(at, ":") && err != nil
}
