package message

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
)

// SignsConnectionIn reports whether a request carries credentials of a scheme that, as servers
// know it, authenticates everything on the same connection (RFC 4559, section 6).
func SignsConnectionIn(r *http.Request) bool {
	for _, value := range r.Header["Authorization"] {
		if _, ok := connectionToken(value); ok {
			return true
		}
	}
	return false
}

// AnswersSignIn reports whether a request is a step of such a sign-in that answers the
// origin's challenge on this connection. Only NTLM's first message is known not to be.
func AnswersSignIn(r *http.Request) bool {
	for _, value := range r.Header["Authorization"] {
		if token, ok := connectionToken(value); ok && !beginsNTLM(token) {
			return true
		}
	}
	return false
}

// AsksOn reports whether the head of an answer asks for the next step of such a sign-in, and
// not just for the first.
func AsksOn(h http.Header) bool {
	for _, value := range h["Www-Authenticate"] {
		if token, ok := connectionToken(value); ok && token != "" {
			return true
		}
	}
	return false
}

// connectionToken returns the token of a scheme that authenticates a connection.
func connectionToken(value string) (token string, ok bool) {
	scheme := value
	if end := strings.IndexAny(value, " \t"); end >= 0 { // servers accept either
		scheme, token = value[:end], strings.Trim(value[end:], " \t")
	}
	return token, strings.EqualFold(scheme, "NTLM") || strings.EqualFold(scheme, "Negotiate")
}

// beginsNTLM reports whether a token contains NTLM's first message, by itself or wrapped in a
// negotiation (MS-NLMP, section 2.2.1.1).
func beginsNTLM(token string) bool {
	b, _ := base64.StdEncoding.DecodeString(token) // decodes what precedes an error
	return bytes.Contains(b, []byte("NTLMSSP\x00\x01\x00\x00\x00"))
}
