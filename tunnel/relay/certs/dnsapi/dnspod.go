package dnsapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// dnspod uses DNSPod's API with tokens, at dnsapi.cn or, internationally, at
// api.dnspod.com.
type dnspod struct {
	*api
	sign  func(form url.Values)
	agent string
	line  string // for visitors from anywhere
}

const (
	dnspodTTL    = "600" // the shortest that every plan allows
	dnspodLength = 100   // items per page
)

// The codes of DNSPod's answers. The codes of a list apply to lists only.
const (
	dnspodDone      = "1"
	dnspodNoDomains = "9"
	dnspodNoRecords = "10"
	dnspodExists    = "104"
	dnspodGone      = "8"
)

func newDNSPod(a *api, cfg Config) *dnspod {
	token := cfg.Key + "," + cfg.Secret
	p := &dnspod{
		api: a, line: "默认",
		sign: func(form url.Values) { form.Set("login_token", token) },
		// DNSPod locks accounts for requests without a name, a version and an address.
		agent: a.agent + " (" + cfg.Contact + ")",
	}
	if a.endpoint.Hostname() == "api.dnspod.com" {
		p.line = "default"
	}
	return p
}

// dnspodText is a string that some answers contain as a number.
type dnspodText string

func (t *dnspodText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	var n json.Number
	err := json.Unmarshal(data, &n)
	*t = dnspodText(n)
	return err
}

// dnspodAnswer contains the fields that are read from any answer.
type dnspodAnswer struct {
	Status struct {
		Code    dnspodText `json:"code"`
		Message string     `json:"message"`
	} `json:"status"`
	Domains []struct {
		ID       dnspodText `json:"id"`
		Name     string     `json:"name"`
		Punycode string     `json:"punycode"`
	} `json:"domains"`
	Records []struct {
		ID    dnspodText `json:"id"`
		Name  string     `json:"name"`
		Type  string     `json:"type"`
		Value string     `json:"value"`
	} `json:"records"`
}

func readDNSPod(a *api, got answer) (dnspodAnswer, error) {
	var body dnspodAnswer
	err := json.Unmarshal(got.body, &body)
	switch {
	case got.status >= 300:
		return body, a.refuse(got.status, string(body.Status.Code), body.Status.Message)
	case err != nil:
		return body, a.unreadable(got.status, err)
	case body.Status.Code != dnspodDone:
		return body, a.refuse(got.status, string(body.Status.Code), body.Status.Message)
	}
	return body, nil
}

func (p *dnspod) ask(ctx context.Context, action string, fields url.Values) (dnspodAnswer, error) {
	form := url.Values{"format": {"json"}, "lang": {"en"}}
	maps.Copy(form, fields)
	p.sign(form)
	got, err := p.call(ctx, func() (*http.Request, error) {
		r, err := http.NewRequest(http.MethodPost, p.url("/"+action, nil), strings.NewReader(form.Encode()))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("User-Agent", p.agent)
		return r, nil
	}, nil)
	if err != nil {
		return dnspodAnswer{}, err
	}
	return readDNSPod(p.api, got)
}

// list requests all pages. use returns how many items it saw, and whether that was
// enough. The answer for an empty list has the code none.
func (p *dnspod) list(ctx context.Context, action string, fields url.Values, none string, use func(dnspodAnswer) (items int, enough bool)) error {
	fields.Set("length", strconv.Itoa(dnspodLength))
	offset := 0
	for range maxPages {
		fields.Set("offset", strconv.Itoa(offset))
		got, err := p.ask(ctx, action, fields)
		if isCode(err, none) {
			return nil
		}
		if err != nil {
			return err
		}
		items, enough := use(got)
		if offset += items; enough || items == 0 {
			return nil
		}
	}
	return nil
}

// zone returns the id of a zone.
func (p *dnspod) zone(ctx context.Context, zone string) (id string, err error) {
	err = p.list(ctx, "Domain.List", url.Values{"keyword": {zone}}, dnspodNoDomains, func(got dnspodAnswer) (int, bool) {
		for _, d := range got.Domains {
			if isZone(d.Name, zone) || isZone(d.Punycode, zone) {
				id = string(d.ID)
			}
		}
		return len(got.Domains), id != ""
	})
	if err == nil && id == "" {
		err = errNoZone("the token is of the account that has the zone")
	}
	return id, err
}

func (p *dnspod) add(ctx context.Context, zone, name, value string) error {
	return p.alone(ctx, func() error { return p.addAlone(ctx, zone, name, value) })
}

func (p *dnspod) addAlone(ctx context.Context, zone, name, value string) error {
	id, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	_, err = p.ask(ctx, "Record.Create", url.Values{
		"domain_id": {id}, "sub_domain": {relative(name, zone)}, "record_type": {"TXT"}, "record_line": {p.line},
		"value": {value}, "ttl": {dnspodTTL},
	})
	if isCode(err, dnspodExists) {
		return nil
	}
	return err
}

func (p *dnspod) remove(ctx context.Context, zone, name, value string) error {
	return p.alone(ctx, func() error { return p.removeAlone(ctx, zone, name, value) })
}

func (p *dnspod) removeAlone(ctx context.Context, zone, name, value string) error {
	id, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	sub := relative(name, zone)
	var ids []string
	err = p.list(ctx, "Record.List", url.Values{"domain_id": {id}, "sub_domain": {sub}}, dnspodNoRecords, func(got dnspodAnswer) (int, bool) {
		for _, r := range got.Records {
			if r.Type == "TXT" && strings.EqualFold(r.Name, sub) && isValue(r.Value, value) && r.ID != "" {
				ids = append(ids, string(r.ID))
			}
		}
		return len(got.Records), false
	})
	if err != nil {
		return err
	}
	for _, record := range ids {
		_, err := p.ask(ctx, "Record.Remove", url.Values{"domain_id": {id}, "record_id": {record}})
		if err != nil && !isCode(err, dnspodGone) {
			return err
		}
	}
	return nil
}
