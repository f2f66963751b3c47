package message

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
)

// SignsConnectionIn reports whether a request has its visitor's sign-in by a scheme that
// servers know to hold for all that comes by the connection (RFC 4559, section 6).
func SignsConnectionIn(r *http.Request) bool {
	for _, value := range r.Header["Authorization"] {
		if _, ok := connectionToken(value); ok {
			return true
		}
	}
	return false
}

// AnswersSignIn reports whether a request is a step of such a sign-in that answers what the
// origin has asked by the connection. Only of NTLM's first it is known that it does not.
func AnswersSignIn(r *http.Request) bool {
	for _, value := range r.Header["Authorization"] {
		if token, ok := connectionToken(value); ok && !beginsNTLM(token) {
			return true
		}
	}
	return false
}

// AsksOn reports whether the head of an answer asks for the next step of such a sign-in, and
// not only for the first.
func AsksOn(h http.Header) bool {
	for _, value := range h["Www-Authenticate"] {
		if token, ok := connectionToken(value); ok && token != "" {
			return true
		}
	}
	return false
}

// connectionToken is what comes with a scheme that signs a connection in.
func connectionToken(value string) (token string, ok bool) {
	scheme := value
	if end := strings.IndexAny(value, " \t"); end >= 0 { // servers take either
		scheme, token = value[:end], strings.Trim(value[end:], " \t")
	}
	return token, strings.EqualFold(scheme, "NTLM") || strings.EqualFold(scheme, "Negotiate")
}

// beginsNTLM reports whether a token has the first message of NTLM in it, by itself or
// inside of another that negotiates (MS-NLMP, section 2.2.1.1).
func beginsNTLM(token string) bool {
	b, _ := base64.StdEncoding.DecodeString(token) // what there is before a fault
	return bytes.Contains(b, []byte("NTLMSSP\x00\x01\x00\x00\x00"))
}
