// Package quiet stops the sampling of this process's CPU time that linking the NATS server
// starts: a one-second timer, in every process of the program, for figures that nothing here
// reads. Import it for its side effect.
package quiet
