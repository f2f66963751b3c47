package certs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/libdns/libdns"
	"github.com/miekg/dns"
)

// Algorithms maps the names of TSIG algorithms (RFC 8945) that Update accepts.
var Algorithms = map[string]string{
	"hmac-sha224": dns.HmacSHA224,
	"hmac-sha256": dns.HmacSHA256,
	"hmac-sha384": dns.HmacSHA384,
	"hmac-sha512": dns.HmacSHA512,
}

const updateFor = 10 * time.Second

// Update changes records by DNS UPDATE (RFC 2136), signed with TSIG if there is a key.
type Update struct {
	Server    string // host:port
	Key       string // name of the key; empty: not signed
	Secret    string // base64
	Algorithm string // one of Algorithms; if empty, hmac-sha256
}

// AppendRecords adds records to a zone.
func (u *Update) AppendRecords(ctx context.Context, zone string, records []libdns.Record) ([]libdns.Record, error) {
	return records, u.send(ctx, zone, records, (*dns.Msg).Insert)
}

// DeleteRecords removes records from a zone.
func (u *Update) DeleteRecords(ctx context.Context, zone string, records []libdns.Record) ([]libdns.Record, error) {
	return records, u.send(ctx, zone, records, (*dns.Msg).Remove)
}

func (u *Update) send(ctx context.Context, zone string, records []libdns.Record, change func(*dns.Msg, []dns.RR)) error {
	msg := new(dns.Msg).SetUpdate(dns.Fqdn(zone))
	var list []dns.RR
	for _, r := range records {
		rr := r.RR()
		if rr.Type != "TXT" {
			return fmt.Errorf("update zone %s: a record of type %s is none of a challenge", zone, rr.Type)
		}
		list = append(list, &dns.TXT{
			Hdr: dns.RR_Header{
				Name:   dns.Fqdn(libdns.AbsoluteName(rr.Name, dns.Fqdn(zone))),
				Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: uint32(rr.TTL / time.Second),
			},
			Txt: []string{rr.Data},
		})
	}
	change(msg, list)
	client := &dns.Client{Net: "tcp", Timeout: updateFor}
	if u.Key != "" {
		algorithm := Algorithms[strings.ToLower(u.Algorithm)]
		if algorithm == "" {
			algorithm = dns.HmacSHA256
		}
		client.TsigSecret = map[string]string{dns.CanonicalName(u.Key): u.Secret}
		msg.SetTsig(dns.CanonicalName(u.Key), algorithm, 300, time.Now().Unix())
	}
	answer, _, err := client.ExchangeContext(ctx, msg, u.Server)
	if err != nil {
		return fmt.Errorf("update zone %s at %s: %w", zone, u.Server, err)
	}
	if answer.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("update zone %s at %s: the server says %s", zone, u.Server, dns.RcodeToString[answer.Rcode])
	}
	return nil
}
