// Package reliable makes a session of streams and datagrams out of records that
// may be lost, late or doubled: frames shaped as QUIC's (RFC 9000 §19, RFC 9221),
// loss recovery by RFC 9002, flow control for each stream and for the session,
// pacing and congestion control, and path MTU discovery. Sealing records and
// following a peer's address are left to the carrier below.
//
// Where to begin: session.go has Session, its settings and the Carrier below,
// stream.go what its callers use. A packet is made in send.go (when) and fill.go
// (of what), and taken in receive.go; frame.go is the wire. What was sent is
// followed in recovery.go, repeat.go says small things twice, and buffer.go and
// ranges.go hold bytes and numbers. Congestion is behind the interface of
// congestion.go (bbr*.go, cubic.go), the path's packet size in mtu.go, silence in
// keepalive.go, and memory for what nobody reads in hold.go.
package reliable
