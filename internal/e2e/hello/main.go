// Command hello is a service to run in a container: it answers with the visitor's address as it
// received it.
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	err := http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Forwarded-For"))
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
