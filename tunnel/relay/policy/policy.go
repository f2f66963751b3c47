// Package policy decides which visitors an endpoint lets in.
package policy

// Policy is the rules of one target, ready to decide.
type Policy struct{}
