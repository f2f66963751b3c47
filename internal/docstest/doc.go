// Package docstest runs the commands that the documents show, as they stand
// there, on a clean copy of the project. It has tests only.
package docstest
