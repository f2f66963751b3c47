// Package relay is the server that agents connect to. It authenticates them, gives their
// tunnels public names and ports, and lets its edge forward visitors to them. Package
// link provides the sessions, and package wire the messages on them. Configuration is in
// package config, data that must last is in package store, and the files beside the store
// are in package datadir.
//
// Where to begin: relay.go covers the relay's life, from New to the end of Run, and
// listen.go its sockets. An agent's session is in session.go, the set of all sessions in
// package roster, the requests on a session in control.go, how a tunnel gets its name or
// port in claims.go, and the meaning of names in package names. Around these:
//
//   - who may have what: clients.go (with package clients), scopes.go, proofs.go
//     (domains of clients, with package proof), strangers.go (sessions that have not sent
//     their hello), policies.go (which visitors are let in, with packages policies and
//     geo); package quota limits the bytes of clients
//   - what is kept of visits and changes: record.go (visits, into package accesslog),
//     forget.go (what is deleted); package ledger records changes, package activity where
//     agents were, and package outlets sends visits and changes to other systems
//   - several nodes, with packages membership, far and nodes: members.go, leave.go,
//     local.go (what other nodes ask for), holding.go (claims that change hands)
//   - for the operator: console.go, and view.go, which is what package operator sees
//     of the relay besides its parts
package relay
