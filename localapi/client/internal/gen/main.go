// Command gen writes the Go types of localapi/client from openapi.yaml. It supports only the parts
// of OpenAPI 3.1 that the document uses, and stops at anything else.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen openapi.yaml types.go")
		os.Exit(2)
	}
	document, err := os.ReadFile(os.Args[1])
	if err == nil {
		var out []byte
		if out, err = generate(document); err == nil {
			err = os.WriteFile(os.Args[2], out, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
