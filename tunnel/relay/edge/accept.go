package edge

import (
	"crypto/tls"
	"net"
	"slices"

	"adit/tunnel/relay/edge/clienthello"
	"adit/tunnel/relay/edge/visitor"
)

// sort looks at a connection of a public listener, and has it be served.
func (e *Edge) sort(f *visitor.Feed, secure bool, conn net.Conn) {
	v := e.admission.Admit(conn)
	if v == nil {
		conn.Close()
		return
	}
	if secure && (e.table.Passes() || e.cfg.Agents != nil) {
		hello, err := clienthello.Peek(v, e.limits.HeaderTime)
		if clienthello.IsPlainHTTP(err) {
			v.RefusePlain()
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
		if ep := e.table.PassThrough(hello.Name); ep != nil {
			e.serveRaw(v, ep, hello.Name)
			return
		}
	}
	var conf *tls.Config
	if secure {
		conf = e.tls
	}
	next := v.ForHTTP(conf, e.limits.HeaderTime, e.limits.HalfOpen)
	if next == nil {
		v.RefusePlain()
		return
	}
	f.Offer(next)
}
