package message

import (
	"net/http"
	"testing"
)

// TestSignsConnectionIn: whoever reads a scheme takes any white space for its end.
func TestSignsConnectionIn(t *testing.T) {
	for value, want := range map[string]bool{
		"NTLM TlRMTVNTUAAB":        true,
		"negotiate YII=":           true,
		"Negotiate\tYII=":          true,
		"NTLM":                     true,
		"Basic TlRM":               false,
		"Bearer NTLM":              false,
		"NTLMish x":                false,
		"":                         false,
		"Negotiate\t \tTlRMTVNTUA": true,
	} {
		r := &http.Request{Header: http.Header{"Authorization": {"Basic YTpi", value}}}
		if got := SignsConnectionIn(r); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
