// Package signin has visitors of http and https tunnels sign in with an identity
// provider, by an authorization code with PKCE (RFC 6749, section 4.1; RFC 7636),
// and reads from a cookie who has done so. A provider speaks OpenID Connect (Core
// 1.0, section 3.1) or is GitHub: two kinds of source. Who is let in is policy's to
// say, and which requests it is asked about edge's.
//
// No node keeps anything of it: what must be known again is in sealed texts that
// the visitor's browser carries, under a key that all nodes have. The way of one
// who comes without a cookie:
//
//  1. the site: Begin leaves a cookie with a random text, and sends the visitor to
//     the provider with a state that says where it came from
//  2. the provider sends it, with the state and a code, to the one address that is
//     registered there: Return, which seals the code and sends it on to the site that
//     the state names
//  3. the site: Serve swaps the code for the identity, leaves the cookie that says
//     who the visitor is, and sends it to where it came from
//
// The code's verifier, the identity's nonce and a part of the state are made of the
// state's number and the random text, so that a code or a state is of use only to the
// browser that asked for it.
package signin
