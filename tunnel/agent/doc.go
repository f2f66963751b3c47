// Package agent is the client engine: it keeps one session with the relay that
// its auth token names, claims a public face for every tunnel that should run,
// and has the visitors' streams and datagrams forwarded to local services. It
// keeps tunnels and token in a state folder and tells what happens in one event
// feed. How the session is carried is left to package link, what is said on it to
// package wire, and the HTTP face of all this to package localapi.
//
// The packages below each do a part of it and know nothing of the Agent, which
// holds them together: what is wished for, on which sessions it is claimed, and
// what is told. Where to begin: types.go has what outsiders see, agent.go the Agent
// itself, and run.go how it begins and ends. Then
//
//   - keeping sessions: keep.go (when to connect; retry.go, how patiently; standing.go,
//     what came of it), second.go (a session with a second node), auth.go, login.go
//     and moved.go (with whom), live.go (one session) and serve.go (what is done on it)
//   - tunnels: tunnel.go, and what people do with them in tunnels.go, change.go,
//     lifecycle.go, declared.go and hold.go; claims.go, giveup.go, handover.go and
//     remove.go ask the relay for them and give them back
//   - what is told and what is kept: status.go, publish.go and save.go
//   - what is asked: policy.go, replay.go, visit.go, diagnose.go
package agent
