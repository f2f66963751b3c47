// Package edge is the part of a relay that visitors connect to: public
// listeners for HTTP, TLS by name, TCP and UDP. It holds the limits and policies
// before a byte reaches an agent, and forwards what they allow over the streams
// and datagrams of the agents' sessions. Who may have which name or port is
// decided above it.
//
// Where to begin: edge.go has the settings and the life of an Edge, table.go what
// it serves (Endpoint, a public face, and Backend, one tunnel behind it), leaving.go
// what it serves no more and visitors are still on. A connection comes in by
// accept.go (guarded by guard.go, counted by package visitor) and goes one of four ways
// (visitors over HTTP/3 by http3.go the first two):
//
//   - http.go to exchange.go, for HTTP/1.1 origins: request.go, upload.go and
//     answer.go are its parts, switch.go is for WebSocket
//   - http.go to route.go, for origins by HTTP/2 (gRPC)
//   - raw.go and pump.go, for tcp, and for tls by sni.go
//   - udp.go, for udp, whose flows package flows numbers
//
// names.go and clientcert.go answer handshakes; balance.go picks among agents, and
// paths.go among the origins of one tunnel. What visitors see in place of a site is
// in pages.
package edge
