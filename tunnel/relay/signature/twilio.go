package signature

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"
)

// maxFields limits the form that Twilio signs.
const maxFields = 1000

// twilio verifies what Twilio signs ("Validating Requests" in its documentation): the
// URL, followed by the names and values of a form in sorted order. For any other body,
// the URL contains its checksum. Twilio is inconsistent about ports, so its own libraries
// accept a URL with and without one.
func (p *Proof) twilio(key []byte, body func(io.Writer)) bool {
	text := whole{left: maxWhole}
	body(&text)
	if text.left < 0 {
		return false
	}
	fields, ok := p.request.fields(text.b)
	if !ok {
		return false
	}
	right := false
	for _, u := range p.request.urls() {
		mac := hmac.New(p.hash(), key)
		_, _ = io.WriteString(mac, u+fields) // a hash never fails
		right = p.fits(mac.Sum(nil)) || right
	}
	return right
}

// fields returns what is signed of a body after the URL. It reports false for a body that
// would not be signed.
func (r Request) fields(body []byte) (string, bool) {
	_, query, _ := strings.Cut(r.Target, "?")
	var sums []string
	for pair := range strings.SplitSeq(query, "&") {
		if sum, ok := strings.CutPrefix(pair, "bodySHA256="); ok {
			sums = append(sums, sum)
		}
	}
	if len(sums) > 0 {
		want := sha256.Sum256(body)
		got, err := hex.DecodeString(sums[0])
		return "", err == nil && len(sums) == 1 && bytes.Equal(got, want[:])
	}
	if len(body) == 0 {
		return "", true
	}
	if kind, err := only(r.Header, "Content-Type"); err != nil || !isForm(kind) || bytes.Count(body, []byte("&")) >= maxFields {
		return "", false
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", false
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := form[name]
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			b.WriteString(name + value)
		}
	}
	return b.String(), true
}

func isForm(kind string) bool {
	kind, _, err := mime.ParseMediaType(kind)
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// urls returns the requested URL without and with its port.
func (r Request) urls() []string {
	name, port := r.host()
	return []string{r.Scheme + "://" + name + r.Target, r.Scheme + "://" + name + ":" + port + r.Target}
}
