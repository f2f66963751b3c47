package message

import (
	"net/http"
	"strings"
)

// Upgrade is what the origin of a request is asked to change to, as a list; empty:
// nothing. stream says that the request came by extended CONNECT.
func Upgrade(r *http.Request, stream bool) string {
	if (r.ProtoMajor == 1 && r.ProtoMinor > 0 || stream) && has(r.Header["Connection"], "upgrade") {
		return wanted(r.Header["Upgrade"])
	}
	return ""
}

// wanted is what a visitor may ask an origin to change to, as a list; "" if
// nothing is left of what it asked. HTTP/2 is taken out, and HTTP inside of TLS (RFC
// 2817), as a server may ignore any of the list (RFC 9110, section 7.8): behind a change
// to it, one visitor's connection would carry requests that the edge neither sees nor
// checks.
func wanted(upgrade []string) string {
	if len(upgrade) == 1 && upgrade[0] == "websocket" {
		return upgrade[0]
	}
	var list []string
	for _, value := range upgrade {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.TrimSpace(name)
			kind, _, _ := strings.Cut(strings.ToLower(name), "/")
			if name != "" && kind != "h2c" && kind != "h2" && kind != "http" && kind != "tls" {
				list = append(list, name)
			}
		}
	}
	return strings.Join(list, ", ")
}

// Lists reports whether protocol is one of list.
func Lists(list, protocol string) bool {
	for name := range strings.SplitSeq(list, ", ") {
		if protocol != "" && strings.EqualFold(name, protocol) {
			return true
		}
	}
	return false
}
