package edge

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strings"

	"adit/tunnel/relay/edge/clienthello"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/visitor"
)

// sort inspects a connection to a public listener and hands it to whoever serves it.
func (e *Edge) sort(f *visitor.Feed, secure bool, conn net.Conn) {
	v := e.admission.Admit(conn)
	if v == nil {
		conn.Close()
		return
	}
	if secure {
		v.ExpectTLS()
	}
	if secure && (e.table.Passes() || e.cfg.Agents != nil) {
		hello, err := clienthello.Peek(v, e.limits.HeaderTime)
		if clienthello.IsPlainHTTP(err) {
			v.RefusePlain(secureURL)
			return
		}
		if err != nil {
			v.Close()
			return
		}
		v.Unread(hello.Bytes)
		if e.cfg.Agents != nil && slices.ContainsFunc(hello.Protos, func(p string) bool { return slices.Contains(e.cfg.AgentProtos, p) }) {
			e.cfg.Agents(v.AsAgent())
			return
		}
		ep := e.table.PassThrough(hello.Name)
		if ep == nil && e.table.AwaitPassing(e.life, hello.Name) {
			ep = e.table.PassThrough(hello.Name)
		}
		if ep != nil {
			e.serveRaw(v, ep, hello.Name)
			return
		}
	}
	var conf *tls.Config
	if secure {
		conf = e.tls
	}
	next := v.ForHTTP(conf, e.limits.HeaderBytes, e.limits.HeaderTime, e.limits.HalfOpen)
	if next == nil {
		v.RefusePlain(secureURL)
		return
	}
	f.Offer(next)
}

// secureURL returns the https URL for a request that came without TLS. Services that do not
// know about the TLS in front of them redirect their visitors to http, with the port of the
// original request. It returns "" if the request claims to be https already: it then comes
// from a load balancer that ends TLS and should not, and a redirect would loop for ever.
func secureURL(r *http.Request) string {
	if strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return ""
	}
	target, ok := message.Target(r)
	if _, named := message.Host(r.Host); !ok || !named || !strings.HasPrefix(target, "/") {
		return ""
	}
	return "https://" + r.Host + target
}
