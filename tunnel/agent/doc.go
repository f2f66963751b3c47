// Package agent is the client engine: it keeps a session with the relay that its auth token names,
// claims a public face for every tunnel that should run, and has the visitors' streams and
// datagrams forwarded to local services. It keeps tunnels and token in a state folder and reports
// what happens in one event feed. Package link carries the session, package wire defines the
// messages on it, and package localapi is the HTTP face of all this.
//
// The packages below each do one part of this and know nothing of the Agent, which holds them
// together: which tunnels are wanted, on which sessions they are claimed, and what is reported. To
// find your way: types.go has what other packages see, agent.go the Agent itself, and run.go how it
// starts and stops. Then
//
//   - keeping sessions: keep.go (when to connect; retry.go, how patiently; standing.go,
//     with what result), second.go (a session with a second node), auth.go, login.go
//     and moved.go (with whom), live.go (one session) and serve.go (what is done on it)
//   - tunnels: tunnel.go, and what people do with them in tunnels.go, change.go,
//     lifecycle.go, declared.go and hold.go; claims.go, giveup.go, handover.go and
//     remove.go claim them from the relay and give them back
//   - what is reported and what is stored: status.go, publish.go and save.go
//   - what is asked: policy.go, replay.go, visit.go, diagnose.go
package agent
