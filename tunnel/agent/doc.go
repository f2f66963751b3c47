// Package agent is the client engine: it keeps one session with the relay that
// its auth token names, claims a public face for every tunnel that should run,
// and forwards the visitors' streams and datagrams to local services. It keeps
// tunnels and token in a state folder and tells what happens in one event feed.
// How the session is carried is left to package link, what is said on it to
// package wire, and the HTTP face of all this to package localapi.
//
// Where to begin: types.go has what outsiders see, agent.go the Agent itself. Then
//
//   - keeping a session: keep.go (when to connect), several.go (to which address),
//     live.go (one session), second.go and handover.go (a session with a second
//     node), package control (what is said)
//   - tunnels: package definition (what they are declared as), tunnel.go, and what people do with them in tunnels.go, change.go,
//     lifecycle.go, declared.go and hold.go; claims.go asks the relay for them
//   - visitors: package forward, replay.go (the inspector's requests again)
//   - what lasts and what is told: packages state and feed, auth.go, report.go
package agent
