package dnsapitest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const clockSkew = 5 * time.Minute

func digest(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, data string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(data))
	return m.Sum(nil)
}

// VerifySigV4 checks the signature of a request according to the documentation of version
// 4 of AWS's signatures.
func VerifySigV4(r *http.Request, body []byte, key, secret, region, service string, now time.Time) error {
	credential, names, signature, err := authorization(r, "AWS4-HMAC-SHA256")
	if err != nil {
		return err
	}
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || at.Sub(now).Abs() > clockSkew {
		return fmt.Errorf("the date %q is not of now", date)
	}
	scope := date[:8] + "/" + region + "/" + service + "/aws4_request"
	if credential != key+"/"+scope {
		return fmt.Errorf("the credential is %q, not of %s", credential, scope)
	}
	if !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") {
		return errors.New("the host and the date must be signed")
	}
	canonical := strings.Join([]string{r.Method, awsPath(r.URL), canonicalQuery(r.URL.Query()), headers(r, names), strings.Join(names, ";"), digest(string(body))}, "\n")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, digest(canonical)}, "\n")
	k := mac(mac(mac(mac([]byte("AWS4"+secret), date[:8]), region), service), "aws4_request")
	if want := hex.EncodeToString(mac(k, text)); signature != want {
		return errors.New("the signature is of something else")
	}
	return nil
}

func awsPath(u *url.URL) string {
	if u.Path == "" {
		return "/"
	}
	return u.EscapedPath()
}

// VerifyACS3 checks the signature of a request according to the documentation of version
// 3 of Alibaba Cloud's signatures.
func VerifyACS3(r *http.Request, body []byte, key, secret string, now time.Time) error {
	credential, names, signature, err := authorization(r, "ACS3-HMAC-SHA256")
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, r.Header.Get("X-Acs-Date"))
	switch {
	case err != nil || at.Sub(now).Abs() > clockSkew:
		return fmt.Errorf("the date %q is not of now", r.Header.Get("X-Acs-Date"))
	case credential != key:
		return fmt.Errorf("the credential is %q", credential)
	case r.Header.Get("X-Acs-Content-Sha256") != digest(string(body)):
		return errors.New("the hash is not the body's")
	case len(r.Header.Get("X-Acs-Signature-Nonce")) < 16:
		return errors.New("the nonce is short")
	}
	// Any of these that a request has must be signed.
	need := []string{"host"}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-acs-") || name == "content-type" {
			need = append(need, name)
		}
	}
	slices.Sort(need)
	if !slices.Equal(names, need) {
		return fmt.Errorf("signed are %v, want %v", names, need)
	}
	canonical := strings.Join([]string{r.Method, "/", canonicalQuery(r.URL.Query()), headers(r, names), strings.Join(names, ";"), digest(string(body))}, "\n")
	if want := hex.EncodeToString(mac([]byte(secret), "ACS3-HMAC-SHA256\n"+digest(canonical))); signature != want {
		return errors.New("the signature is of something else")
	}
	return nil
}

// authorization parses the header that both schemes use.
func authorization(r *http.Request, scheme string) (credential string, names []string, signature string, err error) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), scheme+" ")
	if !ok {
		return "", nil, "", fmt.Errorf("the request is not signed by %s", scheme)
	}
	fields := make(map[string]string)
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}
	names = strings.Split(fields["SignedHeaders"], ";")
	if !slices.IsSorted(names) {
		return "", nil, "", errors.New("the signed headers are not in order")
	}
	return fields["Credential"], names, fields["Signature"], nil
}

func headers(r *http.Request, names []string) string {
	var b strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		b.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return b.String()
}

// canonicalQuery sorts a query byte by byte, encoded according to RFC 3986.
func canonicalQuery(query url.Values) string {
	var parts []string
	for name, values := range query {
		for _, value := range values {
			parts = append(parts, percent(name)+"="+percent(value))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

func percent(text string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(plain, text[i]) >= 0 {
			b.WriteByte(text[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", text[i])
		}
	}
	return b.String()
}
