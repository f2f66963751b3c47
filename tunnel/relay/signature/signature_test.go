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

// vector is a request whose signature is right.
type vector struct {
	name    string
	scheme  Scheme
	secrets []Secret
	header  map[string]string
	body    string
	at      int64
}

const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

// vectors are GitHub's, Slack's and Standard Webhooks' own, from their documents.
// The others are made with openssl after the providers' documents, which have none.
func vectors() []vector {
	const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standard := func(family, secret string) vector {
		return vector{
			"standard, " + family + ", " + secret[:5],
			Scheme{Provider: Standard},
			[]Secret{Secret(secret)},
			map[string]string{
				family + "-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", family + "-Timestamp": "1614265330",
				family + "-Signature": "v1a,bm90 v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
			},
			`{"test": 2432232314}`, 1614265330,
		}
	}
	jefe := func(name, algorithm, encoding, prefix, sum string) vector {
		return vector{name, Scheme{HMAC, "x-sign", algorithm, encoding, prefix}, []Secret{"another one", "key Jefe"}, map[string]string{"X-Sign": prefix + sum}, "what do ya want for nothing?", 0}
	}
	return []vector{
		{"github", Scheme{Provider: GitHub}, []Secret{"It's a Secret to Everybody"}, map[string]string{
			"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
		}, "Hello, World!", 0},
		{"slack", Scheme{Provider: Slack}, []Secret{"8f742231b10e8888abcd99yyyzzz85a5"}, map[string]string{
			"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
		}, slackBody, 1531420618},
		standard("Webhook", standardSecret),
		standard("Svix", strings.TrimPrefix(standardSecret, "whsec_")),
		{"gitlab", Scheme{Provider: GitLab}, []Secret{"the old token", "the new token"}, map[string]string{"X-Gitlab-Token": "the new token"}, "{}", 0},
		{"stripe", Scheme{Provider: Stripe}, []Secret{"whsec_test_secret"}, map[string]string{
			"Stripe-Signature": "t=1492774577,v1=" + strings.Repeat("0", 64) + ",v1=799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
		}, `{"id":"evt_1"}`, 1492774577},
		{"shopify", Scheme{Provider: Shopify}, []Secret{"hush hush"}, map[string]string{"X-Shopify-Hmac-Sha256": "+fxGcjtHL3ewJpnVroPoFM5pp7SNSTNPsk6ysAdm9f8="}, `{"id":820982911946154500}`, 0},
		jefe("hmac", "", "", "", "8161850aaa7c483d5c1eecf1c09ed95dcb3276fcc23167bf7870736f7e01b74a"),
		jefe("hmac sha512 base64", "sha512", "base64", "sum=", "8cDDxPhA/Vv2Ddm5jDBgx/hoiIzqf9V2kOukHXc9FxenJqsvSXxIvi3MYRrFssJ7yePNnHGrrdfzx4zUJ9zMiQ=="),
		jefe("hmac sha1", "sha1", "hex", "", "9e2d97b9d50bdb6bcfbd48a39f0febe60411b7c3"),
	}
}

func (v vector) request() (http.Header, []byte) {
	h := http.Header{}
	for name, value := range v.header {
		h.Set(name, value)
	}
	return h, []byte(v.body)
}

// proves reports whether a verifier finds a request's signature right.
func proves(v *Verifier, h http.Header, body []byte, at int64) (Print, bool) {
	p, err := v.Read(h, time.Unix(at, 0))
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

func TestRightSignatures(t *testing.T) {
	for _, c := range vectors() {
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t, c.scheme, c.secrets...)
			h, body := c.request()
			print, ok := proves(v, h, body, c.at)
			if !ok {
				t.Fatal("the right signature is refused")
			}
			if !v.Knows(print) {
				t.Error("the verifier does not know its own secret")
			}
			if other := verifier(t, Scheme{Provider: GitHub}, "no such secret"); other.Knows(print) {
				t.Error("another verifier knows the secret")
			}
			if _, ok := proves(v, h, append(body, '\n'), c.at); ok && v.NeedsBody() {
				t.Error("a body with one byte more is let in")
			}
			if _, ok := proves(v, http.Header{}, body, c.at); ok {
				t.Error("a request without a signature is let in")
			}
			for name := range c.header {
				twice, _ := c.request()
				twice.Add(name, twice.Get(name))
				if _, ok := proves(v, twice, body, c.at); ok {
					t.Errorf("a request with two of %s is let in", name)
				}
				cut, _ := c.request()
				cut.Set(name, cut.Get(name)[:len(cut.Get(name))-1])
				if _, ok := proves(v, cut, body, c.at); ok && c.scheme.Provider != Stripe { // whose last signature is v0
					t.Errorf("a request with a shorter %s is let in", name)
				}
			}
		})
	}
}

func TestSignedTimeIsHeld(t *testing.T) {
	for _, c := range vectors() {
		if c.at == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t, c.scheme, c.secrets...)
			h, body := c.request()
			for off, want := range map[int64]bool{-301: false, -300: true, 300: true, 301: false} {
				if _, got := proves(v, h, body, c.at+off); got != want {
					t.Errorf("%d s off: got %v, want %v", off, got, want)
				}
			}
		})
	}
}

// TestTimeIsSigned gives a signature another time.
func TestTimeIsSigned(t *testing.T) {
	for _, c := range vectors() {
		for name, value := range c.header {
			was := fmt.Sprint(c.at)
			if c.at == 0 || !strings.Contains(value, was) {
				continue
			}
			for _, now := range []string{fmt.Sprint(c.at + 1), "0" + was, "+" + was, was + " ", "", was + "." + was, strings.Repeat("9", 30)} {
				h, body := c.request()
				h.Set(name, strings.Replace(value, was, now, 1))
				if _, ok := proves(verifier(t, c.scheme, c.secrets...), h, body, c.at); ok {
					t.Errorf("%s: let in at %q", c.name, now)
				}
			}
		}
	}
}

func TestDiscord(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, Scheme{Provider: Discord}, Secret(hex.EncodeToString(public)))
	body := []byte(`{"type":1}`)
	h := http.Header{}
	h.Set("X-Signature-Timestamp", "1700000000")
	h.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, append([]byte("1700000000"), body...))))
	if _, ok := proves(v, h, body, 1700000000); !ok {
		t.Error("the right signature is refused")
	}
	if _, ok := proves(v, h, []byte(`{"type":2}`), 1700000000); ok {
		t.Error("another body is let in")
	}
	if _, ok := proves(v, h, body, 1700000301); ok {
		t.Error("an old one is let in")
	}
	long := bytes.Repeat([]byte("x"), maxDiscord+1)
	for size, want := range map[int]bool{maxDiscord: true, maxDiscord + 1: false} {
		h.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, append([]byte("1700000000"), long[:size]...))))
		if _, ok := proves(v, h, long[:size], 1700000000); ok != want {
			t.Errorf("%d bytes: got %v, want %v", size, ok, want)
		}
	}
	h.Set("X-Signature-Ed25519", "00")
	if _, ok := proves(v, h, body, 1700000000); ok {
		t.Error("a short signature is let in")
	}
}

// TestIdWithDot moves a part of the body into what is signed before it.
func TestIdWithDot(t *testing.T) {
	v := verifier(t, Scheme{Provider: Standard}, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	key, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("msg.1700000000.1700000001.rest"))
	h := http.Header{}
	h.Set("Webhook-Id", "msg.1700000000")
	h.Set("Webhook-Timestamp", "1700000001")
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	if _, ok := proves(v, h, []byte("rest"), 1700000000); ok {
		t.Error("let in by the signature of another body")
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
		{"header", Scheme{Provider: GitHub, Header: "X-Sign"}, good},
		{"algorithm", Scheme{Provider: Slack, Algorithm: "sha256"}, good},
		{"encoding", Scheme{Provider: Stripe, Encoding: "hex"}, good},
		{"prefix", Scheme{Provider: Shopify, Prefix: "v1="}, good},
		{"header", Scheme{Provider: HMAC}, good},
		{"header", Scheme{Provider: HMAC, Header: "X Sign"}, good},
		{"algorithm", Scheme{Provider: HMAC, Header: "X-Sign", Algorithm: "md5"}, good},
		{"encoding", Scheme{Provider: HMAC, Header: "X-Sign", Encoding: "base32"}, good},
		{"prefix", Scheme{Provider: HMAC, Header: "X-Sign", Prefix: "a b"}, good},
		{"secrets", Scheme{Provider: GitHub}, nil},
		{"secrets", Scheme{Provider: GitHub}, []Secret{"12345678", "12345679", "12345670", "12345671"}},
		{"secrets[0]", Scheme{Provider: GitHub}, []Secret{"short"}},
		{"secrets[1]", Scheme{Provider: GitHub}, []Secret{"12345678", "pasted with a line end\n"}},
		{"secrets[0]", Scheme{Provider: Standard}, []Secret{"whsec_not base64!"}},
		{"secrets[0]", Scheme{Provider: Standard}, []Secret{"whsec_AAAA"}},
		{"secrets[0]", Scheme{Provider: Discord}, []Secret{"0123456789abcdef"}},
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
	for _, c := range vectors() {
		var all []string
		for _, value := range c.header {
			all = append(all, value)
		}
		f.Add(c.scheme.Provider, strings.Join(all, "\n"), c.body)
	}
	headers := map[string][]string{
		GitHub: {"X-Hub-Signature-256"}, GitLab: {"X-Gitlab-Token"}, Stripe: {"Stripe-Signature"}, Shopify: {"X-Shopify-Hmac-Sha256"}, HMAC: {"X-Sign"},
		Slack: {"X-Slack-Request-Timestamp", "X-Slack-Signature"}, Discord: {"X-Signature-Timestamp", "X-Signature-Ed25519"},
		Standard: {"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"},
	}
	f.Fuzz(func(t *testing.T, provider, values, body string) {
		if !slices.Contains(Providers(), provider) {
			return // there is nothing to be read
		}
		s := Scheme{Provider: provider}
		if provider == HMAC {
			s.Header = "X-Sign"
		}
		// A secret that nobody is told: nothing may be right.
		v, err := New(s, []Secret{"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for i, value := range strings.SplitN(values, "\n", len(headers[provider])) {
			h.Set(headers[provider][i], value)
		}
		if _, ok := proves(v, h, []byte(body), 1614265330); ok {
			t.Errorf("%s is let in by %q", provider, values)
		}
	})
}
