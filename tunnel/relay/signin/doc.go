// Package signin lets visitors of http and https tunnels sign in with an identity
// provider, by an authorization code with PKCE (RFC 6749, section 4.1; RFC 7636), and
// reads from a cookie who has done so. A provider is either one that speaks OpenID
// Connect (Core 1.0, section 3.1) or GitHub; each is a source. Package policy decides who
// is let in, and package edge decides which requests to ask about.
//
// Nodes store nothing about a sign-in. Everything that is needed later is in sealed texts
// that the visitor's browser carries, sealed with a key that all nodes have. A visitor
// without a cookie signs in as follows:
//
//  1. the site: Begin leaves a cookie with a random text, and sends the visitor to
//     the provider with a state that says where the visitor came from
//  2. the provider sends the visitor, with the state and a code, to the one address that
//     is registered there: Return, which seals the code and sends the visitor on to the
//     site that the state names
//  3. the site: Serve exchanges the code for the identity, leaves the cookie that says
//     who the visitor is, and sends the visitor back to where it came from
//
// The code's verifier, the identity's nonce and a part of the state are derived from the
// state's number and the random text, so a code or a state is useful only to the browser
// that asked for it.
package signin
