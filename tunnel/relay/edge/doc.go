// Package edge is the part of a relay that visitors connect to: public
// listeners for HTTP, TLS by name, TCP and UDP. It holds the limits and policies
// before a byte reaches an agent, and forwards what they allow over the streams
// and datagrams of the agents' sessions. Who may have which name or port is
// decided above it.
//
// Where to begin: edge.go has the settings and the life of an Edge, package routing
// what it serves (Endpoint, a public face, and Backend, one tunnel behind it). A
// connection comes in by accept.go (let in by package visitor, guarded by guard.go) and
// goes one of three ways (visitors over HTTP/3, whom package h3 lets in, the first):
//
//   - http.go, which package exchange forwards
//   - raw.go and package pump, for tcp, and for tls by clienthello
//   - package udp, for udp, whose flows package flows numbers
//
// names.go and clientcert.go answer handshakes. What else needs nothing of an edge is in
// packages of its own: message (what a request and its answer become), origin (streams
// to origins), presence (the visits of an endpoint), backlog (memory that waits), webhook
// (bodies that are held), pages (what visitors see in place of a site).
package edge
