package message

import (
	"encoding/base64"
	"net/http"
	"testing"
)

// TestSignsConnectionIn accepts any white space after a scheme, as servers do.
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

// TestStepsOfASignIn distinguishes the steps as far as that is possible.
func TestStepsOfASignIn(t *testing.T) {
	ntlm := func(kind byte) string {
		return base64.StdEncoding.EncodeToString([]byte("NTLMSSP\x00" + string([]byte{kind, 0, 0, 0}) + "and so on"))
	}
	wrapped := base64.StdEncoding.EncodeToString([]byte("\x60\x48\x06NTLMSSP\x00\x01\x00\x00\x00 and so on"))
	for value, answers := range map[string]bool{
		"NTLM " + ntlm(1):          false,
		"Negotiate  " + ntlm(1):    false,
		"Negotiate " + wrapped:     false,
		"ntlm\t" + ntlm(3):         true,
		"Negotiate YIIGhgYGKwYBBQ": true, // a ticket, perhaps
		"NTLM !":                   true,
		"Basic " + ntlm(3):         false,
	} {
		if got := AnswersSignIn(&http.Request{Header: http.Header{"Authorization": {value}}}); got != answers {
			t.Errorf("%q: it answers: %v, want %v", value, got, answers)
		}
	}
	for value, asks := range map[string]bool{
		"NTLM " + ntlm(2): true, "negotiate\tYII=": true,
		"NTLM": false, "Negotiate ": false, "Negotiate, NTLM": false, "Basic realm=site": false,
	} {
		if got := AsksOn(http.Header{"Www-Authenticate": {"Basic realm=site", value}}); got != asks {
			t.Errorf("%q: it asks on: %v, want %v", value, got, asks)
		}
	}
}
