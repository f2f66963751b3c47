package dnsapi

import (
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"adit/tunnel/relay/certs/dnsapi/dnsapitest"
)

var quiet = log.New(io.Discard, "", 0)

func noPause(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// The example in Alibaba Cloud's document of version 3 of its signatures.
func TestACS3IsAsPublished(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "https://ecs.cn-shanghai.aliyuncs.com/?ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Acs-Action", "RunInstances")
	r.Header.Set("X-Acs-Version", "2014-05-26")
	at := time.Date(2023, 10, 26, 10, 22, 32, 0, time.UTC)
	signACS3(r, "YourAccessKeyId", "YourAccessKeySecret", "3156853299f313e23d1673dc12e1703d", at)
	const want = "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version," +
		"Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
	if got := r.Header.Get("Authorization"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := dnsapitest.VerifyACS3(r, nil, "YourAccessKeyId", "YourAccessKeySecret", at); err != nil {
		t.Errorf("the stand-in refuses the published signature: %v", err)
	}
	r.URL.RawQuery += "&more=1"
	if err := dnsapitest.VerifyACS3(r, nil, "YourAccessKeyId", "YourAccessKeySecret", at); err == nil {
		t.Error("the stand-in takes a signature of something else")
	}
}

// Cases from the test suite that AWS publishes for version 4 of its signatures. The code
// that signs here and the stand-in that checks must both agree with them.
func TestSigV4IsAsPublished(t *testing.T) {
	const key, secret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for _, tt := range []struct{ name, method, target, signature string }{
		{"get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(tt.method, "https://example.amazonaws.com"+tt.target, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
			if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r, empty, "service", "us-east-1", at); err != nil {
				t.Fatal(err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + tt.signature
			if got := r.Header.Get("Authorization"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			r.Header.Set("Authorization", want)
			if err := dnsapitest.VerifySigV4(r, nil, key, secret, "us-east-1", "service", at); err != nil {
				t.Errorf("the stand-in refuses the published signature: %v", err)
			}
			r.Header.Set("Authorization", strings.Replace(want, "Signature=", "Signature=0", 1))
			if err := dnsapitest.VerifySigV4(r, nil, key, secret, "us-east-1", "service", at); err == nil {
				t.Error("the stand-in takes another signature")
			}
		})
	}
}
