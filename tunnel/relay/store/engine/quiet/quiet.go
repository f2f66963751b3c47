// Package quiet ends the sampling of this process's CPU time that linking the
// NATS server begins: a timer of one second, in every process of the program, for
// figures that nothing here reads. Import it for its effect.
package quiet
