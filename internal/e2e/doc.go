// Package e2e tests the built program the way its users run it: relay, daemon and visitor are
// separate processes, reached only through commands, HTTP and the public addresses. It has tests
// only.
package e2e
