package dnsapi

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzAnswers passes arbitrary data to the parsers of the hosts' answers. They must
// terminate, and their messages must be a single line that may appear in a log.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"success":true,"errors":[],"result":[{"id":"z1","name":"example.com"}],"result_info":{"total_pages":2}}`,
		`{"success":false,"errors":[{"code":81058,"message":"An identical record already exists."}],"result":null}`,
		`<ListHostedZonesByNameResponse><HostedZones><HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name><Config><PrivateZone>false</PrivateZone></Config></HostedZone></HostedZones><IsTruncated>true</IsTruncated></ListHostedZonesByNameResponse>`,
		`<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`,
		`<InvalidChangeBatch><Messages><Message>Tried to delete</Message></Messages></InvalidChangeBatch>`,
		`{"TotalCount":1,"Domains":{"Domain":[{"DomainName":"example.com","PunyCode":"example.com"}]}}`,
		`{"Code":"Throttling.User","Message":"denied"}`,
		`{"status":{"code":1,"message":"done"},"domains":[{"id":7,"name":"example.com"}],"records":[{"id":"8","type":"TXT"}]}`,
		"", "null", "[]", "{", "\x00",
	} {
		f.Add(200, []byte(seed))
		f.Add(400, []byte(seed))
	}
	a, err := newAPI(config(Cloudflare))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got := answer{status, body}
		var zones []cloudflareZone
		_, err1 := readCloudflare(a, got, &zones)
		_, err2 := readRoute53(a, got)
		_, err3 := readAliDNS(a, got)
		pod, err4 := readDNSPod(a, got)
		for _, err := range []error{err1, err2, err3, err4} {
			if err == nil {
				if status >= 300 {
					t.Fatalf("an answer of status %d is none", status)
				}
				continue
			}
			if text := err.Error(); len([]rune(text)) > 2*maxSaid+100 || strings.ContainsFunc(text, unicode.IsControl) {
				t.Fatalf("it says %q", text)
			}
		}
		if err4 == nil && pod.Status.Code != dnspodDone {
			t.Fatalf("a code of %q was taken", pod.Status.Code)
		}
		route53Busy(got)
		alidnsBusy(got)
	})
}
