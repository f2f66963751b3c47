package dnsapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// alidns uses Alibaba Cloud DNS's API of 2015-01-09. The key needs
// alidns:DescribeDomains, DescribeSubDomainRecords, AddDomainRecord and
// DeleteDomainRecord.
type alidns struct {
	*api
	sign func(r *http.Request)
}

const (
	alidnsVersion = "2015-01-09"
	alidnsTTL     = "600" // the shortest that every plan allows
	alidnsExists  = "DomainRecordDuplicate"
	alidnsGone    = "DomainRecordNotBelongToUser" // the answer for a record that is gone
	acs3          = "ACS3-HMAC-SHA256"
)

func newAliDNS(a *api, cfg Config) *alidns {
	key, secret := cfg.Key, cfg.Secret
	return &alidns{a, func(r *http.Request) { signACS3(r, key, secret, rand.Text(), a.now()) }}
}

// signACS3 signs a request without a body according to version 3 of Alibaba Cloud's
// signatures. The query must be encoded by encode.
func signACS3(r *http.Request, key, secret, nonce string, at time.Time) {
	empty := sha256.Sum256(nil)
	r.Header.Set("X-Acs-Content-Sha256", hex.EncodeToString(empty[:]))
	r.Header.Set("X-Acs-Date", at.UTC().Format("2006-01-02T15:04:05Z"))
	r.Header.Set("X-Acs-Signature-Nonce", nonce)
	names := []string{"host"}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-acs-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var text strings.Builder
	text.WriteString(r.Method + "\n/\n" + r.URL.RawQuery + "\n")
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.URL.Host
		}
		text.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	signed := strings.Join(names, ";")
	text.WriteString("\n" + signed + "\n" + hex.EncodeToString(empty[:]))
	canonical := sha256.Sum256([]byte(text.String()))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(acs3 + "\n" + hex.EncodeToString(canonical[:])))
	r.Header.Set("Authorization", acs3+" Credential="+key+",SignedHeaders="+signed+",Signature="+hex.EncodeToString(mac.Sum(nil)))
}

// alidnsAnswer contains the fields that are read from any answer.
type alidnsAnswer struct {
	Code    string `json:"Code"`
	Message string `json:"Message"`
	Total   int    `json:"TotalCount"`
	Domains struct {
		Domain []struct {
			Name     string `json:"DomainName"`
			Punycode string `json:"PunyCode"`
		} `json:"Domain"`
	} `json:"Domains"`
	Records struct {
		Record []struct {
			ID    string `json:"RecordId"`
			RR    string `json:"RR"`
			Type  string `json:"Type"`
			Value string `json:"Value"`
		} `json:"Record"`
	} `json:"DomainRecords"`
}

func readAliDNS(a *api, got answer) (alidnsAnswer, error) {
	var body alidnsAnswer
	err := json.Unmarshal(got.body, &body)
	if got.status >= 300 {
		return body, a.refuse(got.status, body.Code, body.Message)
	}
	if err != nil {
		return body, a.unreadable(got.status, err)
	}
	return body, nil
}

// alidnsBusy reports whether the host asks for a pause, which it does with status 400.
func alidnsBusy(got answer) bool {
	var body alidnsAnswer
	return got.status >= 400 && json.Unmarshal(got.body, &body) == nil &&
		(strings.HasPrefix(body.Code, "Throttling") || body.Code == "ServiceUnavailable")
}

func (p *alidns) ask(ctx context.Context, action string, query url.Values) (alidnsAnswer, error) {
	got, err := p.call(ctx, func() (*http.Request, error) {
		r, err := http.NewRequest(http.MethodPost, p.url("/", query), http.NoBody)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Accept", "application/json")
		r.Header.Set("X-Acs-Action", action)
		r.Header.Set("X-Acs-Version", alidnsVersion)
		p.sign(r) // with a new nonce each time
		return r, nil
	}, alidnsBusy)
	if err != nil {
		return alidnsAnswer{}, err
	}
	return readAliDNS(p.api, got)
}

// list requests all pages. use returns how many items it saw, and whether that was
// enough.
func (p *alidns) list(ctx context.Context, action string, query url.Values, use func(alidnsAnswer) (items int, enough bool)) error {
	query.Set("PageSize", "100")
	seen := 0
	for page := 1; page <= maxPages; page++ {
		query.Set("PageNumber", strconv.Itoa(page))
		got, err := p.ask(ctx, action, query)
		if err != nil {
			return err
		}
		items, enough := use(got)
		if seen += items; enough || items == 0 || seen >= got.Total {
			return nil
		}
	}
	return nil
}

// zone returns the zone as the host writes it.
func (p *alidns) zone(ctx context.Context, zone string) (domain string, err error) {
	err = p.list(ctx, "DescribeDomains", url.Values{"KeyWord": {zone}}, func(got alidnsAnswer) (int, bool) {
		for _, d := range got.Domains.Domain {
			if isZone(d.Name, zone) || isZone(d.Punycode, zone) {
				domain = d.Name
			}
		}
		return len(got.Domains.Domain), domain != ""
	})
	if err == nil && domain == "" {
		err = errNoZone("the key needs alidns:DescribeDomains")
	}
	return domain, err
}

func (p *alidns) add(ctx context.Context, zone, name, value string) error {
	return p.alone(ctx, func() error { return p.addAlone(ctx, zone, name, value) })
}

func (p *alidns) addAlone(ctx context.Context, zone, name, value string) error {
	domain, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	_, err = p.ask(ctx, "AddDomainRecord", url.Values{
		"DomainName": {domain}, "RR": {relative(name, zone)}, "Type": {"TXT"}, "Value": {value}, "TTL": {alidnsTTL},
	})
	if isCode(err, alidnsExists) {
		return nil
	}
	return err
}

func (p *alidns) remove(ctx context.Context, zone, name, value string) error {
	return p.alone(ctx, func() error { return p.removeAlone(ctx, zone, name, value) })
}

func (p *alidns) removeAlone(ctx context.Context, zone, name, value string) error {
	domain, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	rr := relative(name, zone)
	sub := rr + "." + domain
	var ids []string
	err = p.list(ctx, "DescribeSubDomainRecords", url.Values{"SubDomain": {sub}, "DomainName": {domain}, "Type": {"TXT"}}, func(got alidnsAnswer) (int, bool) {
		for _, r := range got.Records.Record {
			if r.Type == "TXT" && strings.EqualFold(r.RR, rr) && isValue(r.Value, value) && r.ID != "" {
				ids = append(ids, r.ID)
			}
		}
		return len(got.Records.Record), false
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := p.ask(ctx, "DeleteDomainRecord", url.Values{"RecordId": {id}}); err != nil && !isCode(err, alidnsGone) {
			return err
		}
	}
	return nil
}
