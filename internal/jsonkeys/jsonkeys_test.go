package jsonkeys

import (
	"strings"
	"testing"
)

func TestTwice(t *testing.T) {
	long := strings.Repeat("é", maxName)
	for document, want := range map[string]string{
		`{}`:   "",
		`[1]`:  "",
		`null`: "",
		`{"deny":["a","a"],"allow":["deny"],"hours":{"zone":"deny"},"basic_auth":[{"name":"a"},{"name":"b"}]}`: "",
		`{"deny":["a"],"rate":5,"deny":["b"]}`:                        "deny",
		`{"deny":["a"],"Deny":[]}`:                                    "Deny",
		`{"hours":{"zone":"a","open":[{}],"zone":"b"}}`:               "zone",
		`{"basic_auth":[{"name":"a","password":"x","password":"y"}]}`: "password",
		`{"x":{},"rate":[[],{}],"x":1}`:                               "x",
		`{"deny":["a"],"d\u0065ny":["b"]}`:                            "deny",
		`{"` + long + `":1,"` + long + `":2}`:                         strings.Repeat("é", maxName/2),
	} {
		if got := Twice([]byte(document)); got != want {
			t.Errorf("%s: got %q, want %q", document, got, want)
		}
	}
}
