// Package docstest runs the commands that the documents show, as they stand
// there, on a clean copy of the project, and follows their links. It has tests
// only.
package docstest
