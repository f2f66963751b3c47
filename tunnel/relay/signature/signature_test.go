package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// proves reports whether a verifier accepts a request's signature.
func proves(v *Verifier, r Request, body []byte, at int64) (Print, bool) {
	p, err := v.Read(r, time.Unix(at, 0))
	if err != nil {
		return Print{}, false
	}
	return p.Proves(func(w io.Writer) {
		for c := range slices.Chunk(body, 7) {
			_, _ = w.Write(c)
		}
	})
}

func verifier(t testing.TB, s Scheme, secrets ...Secret) *Verifier {
	t.Helper()
	v, err := New(s, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// strangers are secrets that nobody has signed with, for providers whose secrets have a
// fixed format.
var strangers = map[string]Secret{
	"discord":  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
	"sendgrid": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE50uG59RsO2KjSgGfokK6deV7o974aktQhngFlKt15CppsHG77eZ4e2O0koX3QJnCIbVSfaRT9KCFBBj2VXxDQg==",
	"standard": "c3RyYW5nZXIgdGhhbiBpdCBpcw==",
}

func stranger(provider string) Secret {
	if s := strangers[provider]; s != "" {
		return s
	}
	return "the secret of a stranger"
}

func TestRightSignatures(t *testing.T) {
	for _, c := range vectors() {
		t.Run(c.name, func(t *testing.T) {
			v := c.verifier(t)
			r, body := c.request()
			print, ok := proves(v, r, body, c.at)
			if !ok {
				t.Fatal("the right signature is refused")
			}
			if !v.Knows(print) {
				t.Error("the verifier does not know its own secret")
			}
			if other := verifier(t, Scheme{Provider: "github"}, "no such secret"); other.Knows(print) {
				t.Error("another verifier knows the secret")
			}
			if _, ok := proves(verifier(t, c.scheme, stranger(c.scheme.Provider)), r, body, c.at); ok {
				t.Error("a secret fits that has not signed")
			}
			for what, other := range map[string][]byte{"one byte more": append(slices.Clone(body), '\n'), "one byte less": body[:len(body)-1], "no body": nil} {
				if _, ok := proves(v, r, other, c.at); ok && v.NeedsBody() {
					t.Errorf("%s is let in", what)
				}
			}
			bare := r
			bare.Header = http.Header{}
			if _, ok := proves(v, bare, body, c.at); ok {
				t.Error("a request without a signature is let in")
			}
			for name := range c.header {
				twice, _ := c.request()
				twice.Header.Add(name, twice.Header.Get(name))
				if _, ok := proves(v, twice, body, c.at); ok {
					t.Errorf("a request with two of %s is let in", name)
				}
				missing, _ := c.request()
				missing.Header.Del(name)
				if _, ok := proves(v, missing, body, c.at); ok {
					t.Errorf("a request without %s is let in", name)
				}
				cut, _ := c.request()
				cut.Header.Set(name, cut.Header.Get(name)[:len(cut.Header.Get(name))-1])
				if _, ok := proves(v, cut, body, c.at); ok && c.name != "stripe" { // whose last one is v0
					t.Errorf("a request with a shorter %s is let in", name)
				}
			}
		})
	}
}

// TestURLIsSigned requests a URL other than the signed one.
func TestURLIsSigned(t *testing.T) {
	for _, c := range vectors() {
		v := c.verifier(t)
		for what, change := range map[string]func(*Request){
			"scheme": func(r *Request) { r.Scheme = "http" },
			"host":   func(r *Request) { r.Host = "other.example.com" },
			"path":   func(r *Request) { r.Target = "/x" + r.Target },
			"query":  func(r *Request) { r.Target += "&" },
		} {
			r, body := c.request()
			change(&r)
			if _, ok := proves(v, r, body, c.at); ok != (c.url == "") {
				t.Errorf("%s with another %s: got %v", c.name, what, ok)
			}
		}
	}
}

func TestSignedTimeIsHeld(t *testing.T) {
	for _, c := range vectors() {
		if c.at == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			v := c.verifier(t)
			r, body := c.request()
			for off, want := range map[int64]bool{-301: false, -299: true, 300: true, 301: false} {
				if _, got := proves(v, r, body, c.at+off); got != want {
					t.Errorf("%d s off: got %v, want %v", off, got, want)
				}
			}
		})
	}
}

// TestTimeIsSigned changes the time of a signature.
func TestTimeIsSigned(t *testing.T) {
	for _, c := range vectors() {
		if c.at == 0 {
			continue
		}
		was, found := c.stamp, false
		next := was[:len(was)-1] + "1"
		if strings.HasSuffix(was, "Z") {
			next = was[:len(was)-2] + "1Z"
		}
		for name, value := range c.header {
			if !strings.Contains(value, was) {
				continue
			}
			found = true
			for _, now := range []string{next, "0" + was, "+" + was, was + " ", "", was + "." + was, strings.Repeat("9", 30)} {
				r, body := c.request()
				r.Header.Set(name, strings.Replace(value, was, now, 1))
				if _, ok := proves(c.verifier(t), r, body, c.at); ok {
					t.Errorf("%s: let in at %q", c.name, now)
				}
			}
		}
		if !found {
			t.Errorf("%s: no header has its time", c.name)
		}
	}
}

// TestBodyIsAskedForOnce counts how often a body is read: at most once per secret, and
// never for a token.
func TestBodyIsAskedForOnce(t *testing.T) {
	for _, c := range vectors() {
		v := verifier(t, c.scheme, stranger(c.scheme.Provider))
		r, body := c.request()
		p, err := v.Read(r, time.Unix(c.at, 0))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		asked := 0
		p.Proves(func(w io.Writer) {
			asked++
			w.Write(body)
		})
		if want := map[bool]int{true: 1}[v.NeedsBody()]; asked != want {
			t.Errorf("%s: the body is asked for %d times, want %d", c.name, asked, want)
		}
	}
}

// TestOneRightSignatureIsEnough puts it before and after a signature by another secret.
func TestOneRightSignatureIsEnough(t *testing.T) {
	v := verifier(t, Scheme{Provider: "pagerduty"}, madeSecret)
	right, wrong := "v1="+hexed(madeBody), "v1="+hexed("another body")
	for value, want := range map[string]bool{right + "," + wrong: true, wrong + "," + right: true, wrong + "," + wrong: false, strings.TrimPrefix(right, "v1="): false} {
		r := Request{Header: http.Header{}}
		r.Header.Set("X-PagerDuty-Signature", value)
		if _, ok := proves(v, r, []byte(madeBody), madeAt); ok != want {
			t.Errorf("%s: got %v, want %v", value, ok, want)
		}
	}
}

// TestSecretsOfARotation uses the maximum number of secrets.
func TestSecretsOfARotation(t *testing.T) {
	secrets := []Secret{"an older random text", "a newer random text", madeSecret}
	r := Request{Header: http.Header{"X-Hub-Signature-256": {"sha256=" + hexed(madeBody)}}}
	if _, ok := proves(verifier(t, Scheme{Provider: "github"}, secrets[:MaxSecrets]...), r, []byte(madeBody), madeAt); !ok {
		t.Error("the last of the secrets is not asked")
	}
}

// TestSignaturesAreBounded hides the right signature behind many others.
func TestSignaturesAreBounded(t *testing.T) {
	for _, c := range made() {
		if c.name != "pagerduty" {
			continue
		}
		right := "v1=" + hexed(madeBody)
		for n, want := range map[int]bool{maxSums - 1: true, maxSums: false} {
			r, body := c.request()
			r.Header.Set("X-PagerDuty-Signature", strings.Repeat("v1="+hexed("another body")+",", n)+right)
			if _, ok := proves(c.verifier(t), r, body, 0); ok != want {
				t.Errorf("behind %d others: got %v, want %v", n, ok, want)
			}
		}
	}
}

func TestTwoTimesAreRefused(t *testing.T) {
	v := verifier(t, Scheme{Provider: "stripe"}, madeSecret)
	r := Request{Header: http.Header{"Stripe-Signature": {"t=" + seconds0 + ",t=" + seconds0 + ",v1=" + hexed(seconds0+"."+madeBody)}}}
	if _, ok := proves(v, r, []byte(madeBody), madeAt); ok {
		t.Error("let in with two times")
	}
}

// TestDiscord includes bodies that are too long to be checked in one piece.
func TestDiscord(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, Scheme{Provider: "discord"}, Secret(hex.EncodeToString(public)))
	r := Request{Header: http.Header{}}
	r.Header.Set("X-Signature-Timestamp", seconds0)
	long := bytes.Repeat([]byte("x"), maxWhole+1)
	for size, want := range map[int]bool{0: true, maxWhole: true, maxWhole + 1: false} {
		r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, append([]byte(seconds0), long[:size]...))))
		if _, ok := proves(v, r, long[:size], madeAt); ok != want {
			t.Errorf("%d bytes: got %v, want %v", size, ok, want)
		}
	}
	for _, more := range []int{maxWhole, 2 * maxWhole} { // behind what is signed
		r.Header.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte(seconds0+"x"))))
		p, err := v.Read(r, time.Unix(madeAt, 0))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Proves(func(w io.Writer) {
			w.Write([]byte("x"))
			w.Write(make([]byte, more))
		}); ok {
			t.Errorf("%d bytes behind those that are signed are let in", more)
		}
	}
	r.Header.Set("X-Signature-Ed25519", "00")
	if _, ok := proves(v, r, long, madeAt); ok {
		t.Error("a short signature is let in")
	}
}

// TestIdWithDot moves a part of the body into what is signed before it.
func TestIdWithDot(t *testing.T) {
	v := verifier(t, Scheme{Provider: "standard"}, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	key, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("msg.1700000000.1700000001.rest"))
	r := Request{Header: http.Header{}}
	r.Header.Set("Webhook-Id", "msg.1700000000")
	r.Header.Set("Webhook-Timestamp", "1700000001")
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	if _, ok := proves(v, r, []byte("rest"), madeAt); ok {
		t.Error("let in by the signature of another body")
	}
}

// TestTable checks the table of providers.
func TestTable(t *testing.T) {
	for i, w := range providers {
		if w.name == "standard" { // stands last
			continue
		}
		if i > 0 && providers[i-1].name >= w.name {
			t.Errorf("%s is not in its place", w.name)
		}
		for _, name := range []string{w.header, w.time, w.id} {
			if http.CanonicalHeaderKey(name) != name {
				t.Errorf("%s: %s is not written as it is looked up", w.name, name)
			}
		}
		if (w.key != "" || w.numbered > 0) && w.time != "" || w.key != "" && w.between == "" || strings.Contains(w.signs, "{time}") != (w.time+w.key != "") {
			t.Errorf("%s has a time that is not read or not signed", w.name)
		}
	}
}

func TestSchemesThatAreRefused(t *testing.T) {
	good := []Secret{"long enough"}
	for _, c := range []struct {
		field   string
		scheme  Scheme
		secrets []Secret
	}{
		{"provider", Scheme{}, good},
		{"provider", Scheme{Provider: "GitHub"}, good},
		{"header", Scheme{Provider: "github", Header: "X-Sign"}, good},
		{"algorithm", Scheme{Provider: "slack", Algorithm: "sha256"}, good},
		{"encoding", Scheme{Provider: "stripe", Encoding: "hex"}, good},
		{"prefix", Scheme{Provider: "shopify", Prefix: "v1="}, good},
		{"header", Scheme{Provider: HMAC}, good},
		{"header", Scheme{Provider: HMAC, Header: "X Sign"}, good},
		{"algorithm", Scheme{Provider: HMAC, Header: "X-Sign", Algorithm: "md5"}, good},
		{"encoding", Scheme{Provider: HMAC, Header: "X-Sign", Encoding: "base32"}, good},
		{"prefix", Scheme{Provider: HMAC, Header: "X-Sign", Prefix: "a b"}, good},
		{"secrets", Scheme{Provider: "github"}, nil},
		{"secrets", Scheme{Provider: "github"}, []Secret{"12345678", "12345679", "12345670", "12345671"}},
		{"secrets[0]", Scheme{Provider: "github"}, []Secret{"short"}},
		{"secrets[1]", Scheme{Provider: "github"}, []Secret{"12345678", "pasted with a line end\n"}},
		{"secrets[0]", Scheme{Provider: "standard"}, []Secret{"whsec_not base64!"}},
		{"secrets[0]", Scheme{Provider: "standard"}, []Secret{"whsec_AAAA"}},
		{"secrets[0]", Scheme{Provider: "discord"}, []Secret{"0123456789abcdef"}},
		{"secrets[0]", Scheme{Provider: "sendgrid"}, []Secret{"0123456789abcdef"}},
		{"secrets[0]", Scheme{Provider: "sendgrid"}, []Secret{"MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}}, // of Ed25519
		{"secrets[0]", Scheme{Provider: "github"}, []Secret{" begins with a space"}},
		{"secrets[0]", Scheme{Provider: "github"}, []Secret{"has a line end\nin its midst"}},
		{"secrets[0]", Scheme{Provider: "github"}, []Secret{Secret(strings.Repeat("s", maxSecret+1))}},
		{"header", Scheme{Provider: HMAC, Header: strings.Repeat("X", 129)}, good},
		{"prefix", Scheme{Provider: HMAC, Header: "X-Sign", Prefix: strings.Repeat("v", 65)}, good},
		{"prefix", Scheme{Provider: HMAC, Header: "X-Sign", Prefix: "é="}, good},
		{"secrets[0]", Scheme{Provider: "sendgrid"}, []Secret{"MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE4zLD79buS1xkJ5Z2Y2D3yvJhN8L+RFSE2nPD0H4kyLwjIcK6T7i5VX+aQpYLugDrI4FfLgtvDqLlu1F/xNFw9kRDUmLjnKiA81AUjGg4MWsWtafeLUohefd8ATK2sgKI"}}, // by P-384
	} {
		_, err := New(c.scheme, c.secrets)
		fault, ok := err.(*FieldError)
		if !ok || fault.Field != c.field {
			t.Errorf("%+v with %d secrets: got %v, want %s at fault", c.scheme, len(c.secrets), err, c.field)
		} else if len(c.secrets) > 0 && strings.Contains(err.Error(), string(c.secrets[len(c.secrets)-1])) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}

func TestSecretIsNotShown(t *testing.T) {
	var out bytes.Buffer
	s := Secret("hush hush")
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "one", s, "all", []Secret{s})
	fmt.Fprintf(&out, "%v %s %+v %#v %q", s, s, []Secret{s}, struct{ S Secret }{s}, s)
	if strings.Contains(out.String(), "hush") {
		t.Errorf("got %s", out.String())
	}
}

func FuzzRead(f *testing.F) {
	headersOf := func(s Scheme) (names []string) {
		for _, w := range s.ways() {
			names = append(names, w.headers()[0])
			for _, name := range []string{w.time, w.id} {
				if name != "" {
					names = append(names, name)
				}
			}
		}
		return append(names, "Content-Type")
	}
	for _, c := range vectors() {
		r, _ := c.request()
		var values []string
		for _, name := range headersOf(c.scheme) {
			values = append(values, r.Header.Get(name))
		}
		f.Add(c.scheme.Provider, strings.Join(values, "\n"), r.Target, c.body, c.at)
	}
	f.Fuzz(func(t *testing.T, provider, values, target, body string, at int64) {
		if !slices.Contains(Providers(), provider) {
			return // there is nothing to be read
		}
		s := Scheme{Provider: provider}
		if provider == HMAC {
			s.Header = "X-Sign"
		}
		// A secret that nobody is told: nothing may be right.
		v, err := New(s, []Secret{stranger(provider)})
		if err != nil {
			t.Fatal(err)
		}
		names := headersOf(s)
		r := Request{Header: http.Header{}, Method: "POST", Scheme: "https", Host: "shop.example.com", Target: target}
		for i, value := range strings.SplitN(values, "\n", len(names)) {
			r.Header.Set(names[i], value)
		}
		if _, ok := proves(v, r, []byte(body), at); ok {
			t.Errorf("%s is let in by %q", provider, values)
		}
	})
}
