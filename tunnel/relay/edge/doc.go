// Package edge is the part of a relay that visitors connect to: the public listeners for HTTP,
// TLS by server name, TCP and UDP. It applies limits and policies before any byte reaches an
// agent, and forwards what they allow over the streams and datagrams of the agents' sessions.
// Its callers decide who may have which name or port.
//
// Where to begin: edge.go has the settings and the life cycle of an Edge; package routing
// holds what it serves (Endpoint, a public face, and Backend, one tunnel behind it). A
// connection is accepted in accept.go, admitted by package visitor and checked by guard.go. It
// then takes one of three paths (visitors over HTTP/3, which package h3 admits, take the
// first):
//
//   - http.go, with package exchange to forward requests
//   - raw.go and package pump, for tcp, and for tls after clienthello
//   - package udp, for udp, with package flows to number the flows
//
// names.go and clientcert.go answer TLS handshakes. Everything that does not need an Edge is
// in its own package: message (rewriting requests and answers), origin (streams to origins),
// presence (the visits of an endpoint), backlog (limits on buffered data), webhook (bodies
// held for verification), pages (what visitors see instead of a site).
package edge
