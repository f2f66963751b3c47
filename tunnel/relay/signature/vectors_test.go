package signature

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// vector is a request with a valid signature.
type vector struct {
	name    string
	scheme  Scheme
	secrets []Secret
	key     string // in place of the secrets, which have to be longer
	header  map[string]string
	body    string
	at      int64  // when it was signed; zero: no time is
	stamp   string // at, as the header has it
	url     string // that is signed; empty: none is
	target  string // of the URL, where it is sent in another way
}

func (v vector) request() (Request, []byte) {
	r := Request{Header: http.Header{}, Method: "POST", Scheme: "https", Host: "shop.example.com", Target: "/hooks"}
	if rest, ok := strings.CutPrefix(v.url, "https://"); ok {
		r.Host, r.Target, _ = strings.Cut(rest, "/")
		r.Target = "/" + r.Target
	}
	if v.target != "" {
		r.Target = v.target
	}
	for name, value := range v.header {
		r.Header.Set(name, value)
	}
	return r, []byte(v.body)
}

func (v vector) verifier(t testing.TB) *Verifier {
	made := verifier(t, v.scheme, v.secrets...)
	if v.key != "" {
		made.keys = [][]byte{[]byte(v.key)}
	}
	return made
}

const (
	madeSecret = "a long random text"
	madeBody   = `{"id":"evt_1"}`
	madeAt     = 1700000000
	seconds0   = "1700000000"
	millis0    = "1700000000123"
	rfc0       = "2023-11-14T22:13:20Z"
)

func sum(algorithm func() hash.Hash, text string) []byte {
	mac := hmac.New(algorithm, []byte(madeSecret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func hexed(text string) string    { return hex.EncodeToString(sum(sha256.New, text)) }
func hexed1(text string) string   { return hex.EncodeToString(sum(sha1.New, text)) }
func hexed512(text string) string { return hex.EncodeToString(sum(sha512.New, text)) }
func based(text string) string    { return base64.StdEncoding.EncodeToString(sum(sha256.New, text)) }

const (
	slackBody  = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	twilioBody = "To=%2B18005551212&Digits=1234&From=%2B12349013030&Caller=%2B12349013030&CallSid=CA1234567890ABCDE"
	twilioURL  = "https://mycompany.com/myapp.php?foo=1&bar=2"
	form       = "application/x-www-form-urlencoded"
)

// published returns examples from the providers' documentation and libraries: the
// documentation of GitHub, Slack, Standard Webhooks, Atlassian (for Bitbucket and Jira)
// and CircleCI, Twilio's documentation and the tests of its twilio-node, and the tests of
// SendGrid's sendgrid-nodejs.
func published() []vector {
	const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standard := func(family, secret string) vector {
		return vector{
			name: "standard, " + family + ", " + secret[:5], scheme: Scheme{Provider: "standard"}, secrets: []Secret{Secret(secret)},
			header: map[string]string{
				family + "-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", family + "-Timestamp": "1614265330",
				family + "-Signature": "v1a,bm90 v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
			},
			body: `{"test": 2432232314}`, at: 1614265330, stamp: "1614265330",
		}
	}
	of := func(name, secret, header, value, body string) vector {
		return vector{name: name, scheme: Scheme{Provider: name}, secrets: []Secret{Secret(secret)}, header: map[string]string{header: value}, body: body}
	}
	slack := of("slack", "8f742231b10e8888abcd99yyyzzz85a5", "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", slackBody)
	slack.header["X-Slack-Request-Timestamp"], slack.at, slack.stamp = "1531420618", 1531420618, "1531420618"
	twilio := of("twilio", "12345678", "X-Twilio-Signature", "0/KCTR6DLpKmkAf8muzZqo1nDgQ=", twilioBody)
	twilio.header["Content-Type"], twilio.url, twilio.key = form, twilioURL, "12345"
	json := of("twilio", "12345678", "X-Twilio-Signature", "a9nBmqA0ju/hNViExpshrM61xv4=", `{"property": "value", "boolean": true}`)
	json.name, json.key, json.url = "twilio with JSON", "12345", twilioURL+"&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
	sendgrid := of(
		"sendgrid", "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEDr2LjtURuePQzplybdC+u4CwrqDqBaWjcMMsTbhdbcwHBcepxo7yAQGhHPTnlvFYPAZFceEu/1FwCM/QmGUhA==",
		"X-Twilio-Email-Event-Webhook-Signature", "MEUCIQCtIHJeH93Y+qpYeWrySphQgpNGNr/U+UyUlBkU6n7RAwIgJTz2C+8a8xonZGi6BpSzoQsbVRamr2nlxFDWYNH2j/0=",
		`{"category":"example_payload","event":"test_event","message_id":"message_id"}`,
	)
	sendgrid.header["X-Twilio-Email-Event-Webhook-Timestamp"], sendgrid.at, sendgrid.stamp = "1588788367", 1588788367, "1588788367"
	return []vector{
		of("github", "It's a Secret to Everybody", "X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "Hello, World!"),
		of("bitbucket", "It's a Secret to Everybody", "X-Hub-Signature", "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9", "Hello World!"),
		of("jira", "It's a Secret to Everybody", "X-Hub-Signature", "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9", "Hello World!"),
		of("circleci", "another-secret", "circleci-signature", "v1=daa220016c8f29a8b214fbfc3671aeec2145cfb1e6790184ffb38b6d0425fa00", "lalala"),
		slack, standard("Webhook", standardSecret), standard("Svix", strings.TrimPrefix(standardSecret, "whsec_")),
		twilio, json, sendgrid,
	}
}

// made returns examples for providers whose documentation has none. Discord's is made
// with openssl.
func made() []vector {
	of := func(name string, header ...string) vector {
		v := vector{name: name, scheme: Scheme{Provider: name}, secrets: []Secret{"an older random text", madeSecret}, header: map[string]string{}, body: madeBody}
		for pair := range slices.Chunk(header, 2) {
			v.header[pair[0]] = pair[1]
		}
		return v
	}
	at := func(stamp string, v vector) vector {
		v.at, v.stamp = madeAt, stamp
		return v
	}
	to := func(url string, v vector) vector {
		v.url = url
		return v
	}
	const square, hubspot = "https://shop.example.com:8443/hooks/square?a=b", "https://shop.example.com/hooks/hubspot/a:b?x=(1)&y=%20"
	encoded := at(millis0, to(hubspot, of("hubspot", "X-HubSpot-Signature-v3", based("POST"+hubspot+madeBody+millis0), "X-HubSpot-Request-Timestamp", millis0)))
	encoded.target = "/hooks/hubspot/a%3Ab?x=%281%29&y=%20"
	discord := at(seconds0, of("discord", "X-Signature-Timestamp", seconds0, "X-Signature-Ed25519", "f11d5d168ed8817a501c4a2d78a03fd3f565a219bd36da993c4f7344d059eb49e904caf39c76b3a4a155c98df4253e4b290a2823157e9e9af658e5ee658b610f"))
	discord.secrets = []Secret{"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "7e2808f3adf69a59820ed9048023e93285159436d4f079ef108746e2746d2a8d"}
	jefe := func(name, algorithm, encoding, prefix, sum string) vector { // RFC 2202 and RFC 4231 have it with another key
		return vector{name: name, scheme: Scheme{HMAC, "x-sign", algorithm, encoding, prefix}, secrets: []Secret{"another one", "key Jefe"}, header: map[string]string{"X-Sign": prefix + sum}, body: "what do ya want for nothing?"}
	}
	return []vector{
		of("asana", "X-Hook-Signature", hexed(madeBody)),
		at(seconds0, of("buildkite", "X-Buildkite-Signature", "timestamp="+seconds0+",signature="+hexed(seconds0+"."+madeBody))),
		at(seconds0, of("calendly", "Calendly-Webhook-Signature", "t="+seconds0+",v1="+hexed(seconds0+"."+madeBody))),
		discord,
		of("docusign", "X-DocuSign-Signature-1", based("another body"), "X-DocuSign-Signature-2", based(madeBody)),
		of("dropbox", "X-Dropbox-Signature", hexed(madeBody)),
		of("forgejo", "X-Forgejo-Signature", hexed(madeBody)),
		of("gitea", "X-Gitea-Signature", hexed(madeBody)),
		of("gitlab", "X-Gitlab-Token", madeSecret),
		of("heroku", "Heroku-Webhook-Hmac-SHA256", based(madeBody)),
		encoded,
		of("intercom", "X-Hub-Signature", "sha1="+hexed1(madeBody)),
		of("launchdarkly", "X-LD-Signature", hexed(madeBody)),
		of("lemonsqueezy", "X-Signature", hexed(madeBody)),
		of("line", "x-line-signature", based(madeBody)),
		of("linear", "Linear-Signature", hexed(madeBody)),
		of("meta", "X-Hub-Signature-256", "sha256="+hexed(madeBody)),
		at(seconds0, of("mux", "Mux-Signature", "t="+seconds0+",v1="+hexed(seconds0+"."+madeBody))),
		of("notion", "X-Notion-Signature", "sha256="+hexed(madeBody)),
		at(seconds0, of("paddle", "Paddle-Signature", "ts="+seconds0+";h1="+hexed("by the old secret")+";h1="+hexed(seconds0+":"+madeBody))),
		of("pagerduty", "X-PagerDuty-Signature", "v1="+hexed("by the old secret")+",v1="+hexed(madeBody)),
		of("paystack", "X-Paystack-Signature", hexed512(madeBody)),
		of("razorpay", "X-Razorpay-Signature", hexed(madeBody)),
		of("sentry", "Sentry-Hook-Signature", hexed(madeBody)),
		of("shopify", "X-Shopify-Hmac-Sha256", based(madeBody)),
		to(square, of("square", "x-square-hmacsha256-signature", based(square+madeBody))),
		at(seconds0, of("stripe", "Stripe-Signature", "t="+seconds0+",v1="+hexed("by the old secret")+",v1="+hexed(seconds0+"."+madeBody)+",v0="+hexed("for tests"))),
		of("telegram", "X-Telegram-Bot-Api-Secret-Token", madeSecret),
		of("terraform", "X-TFE-Notification-Signature", hexed512(madeBody)),
		of("typeform", "Typeform-Signature", "sha256="+based(madeBody)),
		of("vercel", "x-vercel-signature", hexed1(madeBody)),
		at(millis0, of("webflow", "x-webflow-signature", hexed(millis0+":"+madeBody), "x-webflow-timestamp", millis0)),
		of("woocommerce", "X-WC-Webhook-Signature", based(madeBody)),
		at(millis0, of("workos", "WorkOS-Signature", "t="+millis0+", v1="+hexed(millis0+"."+madeBody))),
		of("xero", "x-xero-signature", based(madeBody)),
		at(rfc0, of("zendesk", "X-Zendesk-Webhook-Signature", based(rfc0+madeBody), "X-Zendesk-Webhook-Signature-Timestamp", rfc0)),
		at(seconds0, of("zoom", "x-zm-signature", "v0="+hexed("v0:"+seconds0+":"+madeBody), "x-zm-request-timestamp", seconds0)),
		// Made with openssl.
		jefe("hmac", "", "", "", "8161850aaa7c483d5c1eecf1c09ed95dcb3276fcc23167bf7870736f7e01b74a"),
		jefe("hmac sha512 base64", "sha512", "base64", "sum=", "8cDDxPhA/Vv2Ddm5jDBgx/hoiIzqf9V2kOukHXc9FxenJqsvSXxIvi3MYRrFssJ7yePNnHGrrdfzx4zUJ9zMiQ=="),
		jefe("hmac sha1", "sha1", "hex", "", "9e2d97b9d50bdb6bcfbd48a39f0febe60411b7c3"),
	}
}

func vectors() []vector { return append(published(), made()...) }

// TestEveryProviderHasVectors checks that the tests that use them cover all of a
// provider's ways.
func TestEveryProviderHasVectors(t *testing.T) {
	all := vectors()
	for _, w := range providers {
		if !slices.ContainsFunc(all, func(v vector) bool {
			r, _ := v.request()
			return v.scheme.Provider == w.name && r.Header.Get(w.headers()[0]) != ""
		}) {
			t.Errorf("there is none of %s by %s", w.name, w.header)
		}
	}
}
