package e2e

import (
	"crypto/tls"
	"net/http"
)

// noHTTP2 as a transport's TLSNextProto keeps it to HTTP/1.1.
var noHTTP2 = map[string]func(string, *tls.Conn) http.RoundTripper{}
