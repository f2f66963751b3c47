package signature

import (
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"io"
	"slices"
	"strconv"
)

// provider describes one way in which a provider signs. If a provider has several, the
// first one whose header is present is used.
type provider struct {
	name     string
	header   string // contains the signature
	numbered int    // if not zero, header is followed by a number up to this one, and any of them may be right
	prefix   string // precedes a signature
	between  string // separates several signatures, any of which may be right; empty: there is only one
	hash     func() hash.Hash
	decode   func(string) ([]byte, error)

	time  string // the header with the signed time,
	key   string // or what precedes it among the signatures; neither: no time is signed
	clock clock
	id    string // another signed header

	// signs is what is signed, if not the body alone: {body}, {time}, {id}, {method},
	// {url} and, with some of its escapes decoded, {uri}.
	signs string

	token bool // there is no signature, only the secret itself
	// secret extracts the key from a secret, or says what the secret must be. If nil, the
	// key is the secret.
	secret func(string) (key []byte, must string)
	// right reports whether a key made the proof. If nil, HMAC is used.
	right func(p *Proof, key []byte, body func(io.Writer)) bool
}

var from64 = base64.StdEncoding.DecodeString

// providers is sorted by name. Unless stated otherwise, the hash is SHA-256 and the
// encoding is hex. Versions of a signature that are not listed here prove nothing.
var providers = []provider{
	{name: "asana", header: "X-Hook-Signature"},
	{name: "bitbucket", header: "X-Hub-Signature", prefix: "sha256="},
	{name: "buildkite", header: "X-Buildkite-Signature", prefix: "signature=", between: ",", key: "timestamp=", signs: "{time}.{body}"},
	{name: "calendly", header: "Calendly-Webhook-Signature", prefix: "v1=", between: ",", key: "t=", signs: "{time}.{body}"},
	{name: "circleci", header: "Circleci-Signature", prefix: "v1=", between: ","},
	{name: "discord", header: "X-Signature-Ed25519", time: "X-Signature-Timestamp", signs: "{time}{body}", secret: ed25519Key, right: (*Proof).ed25519},
	{name: "docusign", header: "X-Docusign-Signature-", numbered: 10, decode: from64},
	{name: "dropbox", header: "X-Dropbox-Signature"},
	{name: "forgejo", header: "X-Forgejo-Signature"},
	{name: "gitea", header: "X-Gitea-Signature"},
	{name: "github", header: "X-Hub-Signature-256", prefix: "sha256="},
	{name: "gitlab", header: "X-Gitlab-Token", token: true},
	{name: "heroku", header: "Heroku-Webhook-Hmac-Sha256", decode: from64},
	{name: "hubspot", header: "X-Hubspot-Signature-V3", decode: from64, time: "X-Hubspot-Request-Timestamp", clock: milliseconds, signs: "{method}{uri}{body}{time}"},
	{name: "intercom", header: "X-Hub-Signature", prefix: "sha1=", hash: sha1.New},
	{name: "jira", header: "X-Hub-Signature", prefix: "sha256="},
	{name: "launchdarkly", header: "X-Ld-Signature"},
	{name: "lemonsqueezy", header: "X-Signature"},
	{name: "line", header: "X-Line-Signature", decode: from64},
	{name: "linear", header: "Linear-Signature"},
	{name: "meta", header: "X-Hub-Signature-256", prefix: "sha256="},
	{name: "mux", header: "Mux-Signature", prefix: "v1=", between: ",", key: "t=", signs: "{time}.{body}"},
	{name: "notion", header: "X-Notion-Signature", prefix: "sha256="},
	{name: "paddle", header: "Paddle-Signature", prefix: "h1=", between: ";", key: "ts=", signs: "{time}:{body}"},
	{name: "pagerduty", header: "X-Pagerduty-Signature", prefix: "v1=", between: ","},
	{name: "paystack", header: "X-Paystack-Signature", hash: sha512.New},
	{name: "razorpay", header: "X-Razorpay-Signature"},
	{name: "sendgrid", header: "X-Twilio-Email-Event-Webhook-Signature", decode: from64, time: "X-Twilio-Email-Event-Webhook-Timestamp", signs: "{time}{body}", secret: ecdsaKey, right: (*Proof).ecdsa},
	{name: "sentry", header: "Sentry-Hook-Signature"},
	{name: "shopify", header: "X-Shopify-Hmac-Sha256", decode: from64},
	{name: "slack", header: "X-Slack-Signature", prefix: "v0=", time: "X-Slack-Request-Timestamp", signs: "v0:{time}:{body}"},
	{name: "square", header: "X-Square-Hmacsha256-Signature", decode: from64, signs: "{url}{body}"},
	{name: "stripe", header: "Stripe-Signature", prefix: "v1=", between: ",", key: "t=", signs: "{time}.{body}"},
	{name: "telegram", header: "X-Telegram-Bot-Api-Secret-Token", token: true},
	{name: "terraform", header: "X-Tfe-Notification-Signature", hash: sha512.New},
	{name: "twilio", header: "X-Twilio-Signature", hash: sha1.New, decode: from64, right: (*Proof).twilio},
	{name: "typeform", header: "Typeform-Signature", prefix: "sha256=", decode: from64},
	{name: "vercel", header: "X-Vercel-Signature", hash: sha1.New},
	{name: "webflow", header: "X-Webflow-Signature", time: "X-Webflow-Timestamp", clock: milliseconds, signs: "{time}:{body}"},
	{name: "woocommerce", header: "X-Wc-Webhook-Signature", decode: from64},
	{name: "workos", header: "Workos-Signature", prefix: "v1=", between: ",", key: "t=", clock: milliseconds, signs: "{time}.{body}"},
	{name: "xero", header: "X-Xero-Signature", decode: from64},
	{name: "zendesk", header: "X-Zendesk-Webhook-Signature", decode: from64, time: "X-Zendesk-Webhook-Signature-Timestamp", clock: rfc3339, signs: "{time}{body}"},
	{name: "zoom", header: "X-Zm-Signature", prefix: "v0=", time: "X-Zm-Request-Timestamp", signs: "v0:{time}:{body}"},

	// Standard Webhooks (https://www.standardwebhooks.com), and the older names that Svix
	// used for its headers.
	{name: "standard", header: "Webhook-Signature", prefix: "v1,", between: " ", decode: from64, id: "Webhook-Id", time: "Webhook-Timestamp", signs: "{id}.{time}.{body}", secret: standardKey},
	{name: "standard", header: "Svix-Signature", prefix: "v1,", between: " ", decode: from64, id: "Svix-Id", time: "Svix-Timestamp", signs: "{id}.{time}.{body}", secret: standardKey},
}

// HMAC stands for any provider that signs the body alone, as described by the Scheme.
const HMAC = "hmac"

// Providers returns the providers that a Scheme may name.
func Providers() []string {
	var names []string
	for _, p := range providers {
		names = append(names, p.name)
	}
	return append(slices.Compact(names), HMAC)
}

// headers returns the headers that may contain a signature.
func (w *provider) headers() []string {
	if w.numbered == 0 {
		return []string{w.header}
	}
	var names []string
	for i := range w.numbered {
		names = append(names, w.header+strconv.Itoa(i+1))
	}
	return names
}
