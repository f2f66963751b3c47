// Package relay is the server that agents connect to: it authenticates them,
// gives their tunnels public names and ports, and lets its edge forward
// visitors to them. The sessions are package link's, the words on them package
// wire's. How it is to be is in package config, what must last in package store, and
// the files beside that in package datadir.
//
// Where to begin: relay.go has its life, from New to the end of Run, and listen.go
// its sockets. An agent's session is in session.go, all of them in package roster, what
// one asks for in control.go, how a tunnel gets its name or port in claims.go, and what
// names mean in package names. Around these:
//
//   - who may have what: clients.go (with package clients), scopes.go, proofs.go
//     (domains of clients, with package proof), strangers.go (sessions before their
//     hello), policies.go (which visitors are let in, with packages policies and geo);
//     package quota holds clients to their bytes
//   - what is kept of visits and changes: record.go (visits, into package accesslog),
//     forget.go (what goes); package ledger has changes, package activity where agents
//     were, and package outlets sends visits and changes on
//   - several nodes, with packages membership, far and nodes: members.go, leave.go,
//     local.go (what other nodes ask for), holding.go (claims that change hands)
//   - for the operator: console.go, and view.go, which is what package operator sees
//     of the relay beside its parts
package relay
