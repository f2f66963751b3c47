package signature

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTwilio signs texts that are written out in full, and sends requests that might
// correspond to them.
func TestTwilio(t *testing.T) {
	sumOf := func(body string) string {
		sum := sha256.Sum256([]byte(body))
		return "bodySHA256=" + hex.EncodeToString(sum[:])
	}
	const path = "https://shop.example.com/sms"
	many := strings.Repeat("a=&", maxFields-1) + "a="
	for _, c := range []struct {
		name, text, host, target, kind, body string
		want                                 bool
	}{
		{"a form", path + "AXBY", "shop.example.com", "/sms", form, "B=Y&A=X", true},
		{"a form with a charset", path + "AX", "shop.example.com", "/sms", form + "; charset=UTF-8", "A=X", true},
		{"what is encoded", path + "Bodyä & b", "shop.example.com", "/sms", form, "Body=%C3%A4+%26%20b", true},
		{"a name with several values", path + "A1A2", "shop.example.com", "/sms", form, "A=2&A=1&A=2", true},
		{"a query and no body", path + "?A=X", "shop.example.com", "/sms?A=X", "", "", true},
		{"its query left out", path, "shop.example.com", "/sms?A=X", "", "", false},
		{"many fields", path + "a", "shop.example.com", "/sms", form, many, true},
		{"too many fields", path + "a", "shop.example.com", "/sms", form, many + "&a=", false},
		{"a form that is none", path + "A", "shop.example.com", "/sms", form, "A=%zz", false},
		{"a form of another type", path + "AX", "shop.example.com", "/sms", "text/plain", "A=X", false},
		{"a form without a type", path + "AX", "shop.example.com", "/sms", "", "A=X", false},
		{"another body", path, "shop.example.com", "/sms", "application/json", "{}", false},
		{"another body, with its sum", path + "?" + sumOf("{}"), "shop.example.com", "/sms?" + sumOf("{}"), "application/json", "{}", true},
		{"the sum of another", path + "?" + sumOf("[]"), "shop.example.com", "/sms?" + sumOf("[]"), "application/json", "{}", false},
		{"the sum of another form", path + "?" + sumOf("[]") + "AX", "shop.example.com", "/sms?" + sumOf("[]"), form, "A=X", false},
		{"two sums", path + "?" + sumOf("{}") + "&" + sumOf("[]"), "shop.example.com", "/sms?" + sumOf("{}") + "&" + sumOf("[]"), "application/json", "{}", false},
		{"a sum that is none", path + "?bodySHA256=", "shop.example.com", "/sms?bodySHA256=", "", "", false},
		{"the usual port signed", "https://shop.example.com:443/smsAX", "shop.example.com", "/sms", form, "A=X", true},
		{"the usual port asked for", path + "AX", "shop.example.com:443", "/sms", form, "A=X", true},
		{"another port", "https://shop.example.com:8443/smsAX", "shop.example.com:8443", "/sms", form, "A=X", true},
		{"another port left out", path + "AX", "shop.example.com:8443", "/sms", form, "A=X", true},
		{"another port than that", "https://shop.example.com:8443/smsAX", "shop.example.com:9443", "/sms", form, "A=X", false},
	} {
		mac := hmac.New(sha1.New, []byte(madeSecret))
		mac.Write([]byte(c.text))
		r := Request{Header: http.Header{}, Method: "POST", Scheme: "https", Host: c.host, Target: c.target}
		r.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		if _, got := proves(verifier(t, Scheme{Provider: "twilio"}, madeSecret), r, []byte(c.body), 0); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	r := Request{Header: http.Header{}, Scheme: "https", Host: "shop.example.com", Target: "/sms"}
	mac := hmac.New(sha1.New, []byte(madeSecret))
	mac.Write([]byte(path + "A" + strings.Repeat("x", maxWhole)))
	r.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	r.Header.Set("Content-Type", form)
	if _, ok := proves(verifier(t, Scheme{Provider: "twilio"}, madeSecret), r, []byte("A="+strings.Repeat("x", maxWhole)), 0); ok {
		t.Error("a form is let in that is longer than is looked at")
	}
	mac.Reset()
	mac.Write([]byte(path + "AX"))
	r.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	p, err := verifier(t, Scheme{Provider: "twilio"}, madeSecret).Read(r, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Proves(func(w io.Writer) {
		io.WriteString(w, "A=X")
		w.Write(make([]byte, maxWhole))
	}); ok {
		t.Error("what comes behind a form that is signed is let in, where it is longer than is looked at")
	}
}

// TestURLAsItWasAskedFor covers ports that are implied, and ports that are not.
func TestURLAsItWasAskedFor(t *testing.T) {
	for _, c := range []struct{ scheme, host, want string }{
		{"https", "shop.example.com", "https://shop.example.com/x?y"},
		{"https", "shop.example.com:443", "https://shop.example.com/x?y"},
		{"https", "shop.example.com:80", "https://shop.example.com:80/x?y"},
		{"http", "shop.example.com:80", "http://shop.example.com/x?y"},
		{"http", "Shop.example.com:8080", "http://Shop.example.com:8080/x?y"},
		{"https", "[2001:db8::1]", "https://[2001:db8::1]/x?y"},
		{"https", "[2001:db8::1]:443", "https://[2001:db8::1]/x?y"},
		{"https", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443/x?y"},
	} {
		if got := (Request{Scheme: c.scheme, Host: c.host, Target: "/x?y"}).url(); got != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.scheme, c.host, got, c.want)
		}
	}
}
