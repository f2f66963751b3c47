// Package e2e tries the built program as its users do: relay, daemon and
// visitor as processes of their own, through nothing but commands, HTTP and
// the public addresses. It has tests only.
package e2e
