// Package reliable turns records that may be lost, late or duplicated into a session of streams and
// datagrams: frames modelled on QUIC's (RFC 9000 §19, RFC 9221), loss recovery by RFC 9002, flow
// control for each stream and for the session, pacing and congestion control, and path MTU
// discovery. Sealing records and following a peer's address are left to the carrier below.
//
// To find your way: session.go has Session, its settings and the Carrier below, and stream.go what
// callers use. send.go decides when to send a packet, fill.go what goes into it, and receive.go
// takes packets in; frame.go is the wire format. recovery.go tracks what was sent, repeat.go sends
// small things twice, and buffer.go and ranges.go hold bytes and numbers. Congestion control is
// behind the interface in congestion.go (bbr*.go, cubic.go); mtu.go finds the path's packet size,
// keepalive.go deals with silence, and hold.go accounts for memory that nobody reads.
package reliable
