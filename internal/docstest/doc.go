// Package docstest runs the commands shown in the documentation, exactly as they are written, on a
// clean copy of the project, and follows its links. It has tests only.
package docstest
