package message

import (
	"net/http"
	"strings"
)

// Upgrade returns the list of protocols that the origin of a request is asked to change to;
// empty means none. stream says that the request came by extended CONNECT.
func Upgrade(r *http.Request, stream bool) string {
	if (r.ProtoMajor == 1 && r.ProtoMinor > 0 || stream) && has(r.Header["Connection"], "upgrade") {
		return wanted(r.Header["Upgrade"])
	}
	return ""
}

// wanted returns the protocols, as a list, that a visitor may ask an origin to change to, or
// "" if none are left. HTTP/2 and HTTP over TLS (RFC 2817) are removed, which is allowed
// because a server may ignore any entry of the list (RFC 9110, section 7.8). After a change to
// one of them, a visitor's connection would carry requests that the edge neither sees nor
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

// Lists reports whether list contains protocol.
func Lists(list, protocol string) bool {
	for name := range strings.SplitSeq(list, ", ") {
		if protocol != "" && strings.EqualFold(name, protocol) {
			return true
		}
	}
	return false
}
