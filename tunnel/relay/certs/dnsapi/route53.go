package dnsapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// route53 uses Amazon Route 53's API of 2013-04-01. The key needs
// route53:ListHostedZonesByName, and for the zone ListResourceRecordSets and
// ChangeResourceRecordSets, and route53:GetChange.
//
// All values of a name form one record set, which can only be changed as a whole. So that
// no value of another challenge is lost, a change deletes the set as it was read and
// creates the new one, in one batch. Route 53 refuses the batch if the set has changed in
// between; then it is read again.
type route53 struct {
	*api
	sign func(r *http.Request, body []byte) error
}

const (
	route53Version = "/2013-04-01"
	route53XML     = "https://route53.amazonaws.com/doc/2013-04-01/"
	route53TTL     = 60
	changeTries    = 8
	syncPause      = 3 * time.Second
	syncFor        = 15 // pauses; after that it is left to the check of the name servers
)

func newRoute53(a *api, cfg Config) *route53 {
	region := cfg.Region
	if region == "" {
		region = "us-east-1"
	}
	signer, key, secret := v4.NewSigner(), cfg.Key, cfg.Secret
	return &route53{a, func(r *http.Request, body []byte) error {
		hash := sha256.Sum256(body)
		return signer.SignHTTP(r.Context(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r, hex.EncodeToString(hash[:]), "route53", region, a.now())
	}}
}

type route53Value struct {
	Value string `xml:"Value"`
}

type route53Set struct {
	Name          string         `xml:"Name"`
	Type          string         `xml:"Type"`
	SetIdentifier string         `xml:"SetIdentifier,omitempty"`
	TTL           int64          `xml:"TTL"`
	Values        []route53Value `xml:"ResourceRecords>ResourceRecord"`
}

type route53Change struct {
	Action string     `xml:"Action"`
	Set    route53Set `xml:"ResourceRecordSet"`
}

type route53Batch struct {
	XMLName xml.Name        `xml:"ChangeResourceRecordSetsRequest"`
	XMLNS   string          `xml:"xmlns,attr"`
	Changes []route53Change `xml:"ChangeBatch>Changes>Change"`
}

// route53Answer contains the fields that are read from any answer.
type route53Answer struct {
	Zones []struct {
		ID      string `xml:"Id"`
		Name    string `xml:"Name"`
		Private bool   `xml:"Config>PrivateZone"`
	} `xml:"HostedZones>HostedZone"`
	Sets        []route53Set `xml:"ResourceRecordSets>ResourceRecordSet"`
	IsTruncated bool         `xml:"IsTruncated"`
	NextName    string       `xml:"NextDNSName"`
	NextZone    string       `xml:"NextHostedZoneId"`
	Change      struct {
		ID     string `xml:"Id"`
		Status string `xml:"Status"`
	} `xml:"ChangeInfo"`
	Code    string `xml:"Error>Code"`
	Message string `xml:"Error>Message"`
}

// readRoute53 parses an answer. The answer for an invalid batch has its own format.
func readRoute53(a *api, got answer) (route53Answer, error) {
	var body route53Answer
	err := xml.Unmarshal(got.body, &body)
	if got.status < 300 {
		if err != nil {
			return body, a.unreadable(got.status, err)
		}
		return body, nil
	}
	var batch struct {
		XMLName  xml.Name
		Messages []string `xml:"Messages>Message"`
	}
	if body.Code == "" && xml.Unmarshal(got.body, &batch) == nil && batch.XMLName.Local == "InvalidChangeBatch" {
		body.Code, body.Message = "InvalidChangeBatch", strings.Join(batch.Messages, " ")
	}
	return body, a.refuse(got.status, body.Code, body.Message)
}

// route53Busy reports whether the host asks for a pause, which it does with status 400.
func route53Busy(got answer) bool {
	if got.status != http.StatusBadRequest {
		return false
	}
	var body route53Answer
	if xml.Unmarshal(got.body, &body) != nil {
		return false
	}
	return body.Code == "Throttling" || body.Code == "ThrottlingException" || body.Code == "PriorRequestNotComplete"
}

func (p *route53) ask(ctx context.Context, method, path string, query url.Values, body []byte) (route53Answer, error) {
	got, err := p.call(ctx, func() (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, method, p.url(route53Version+path, query), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body != nil {
			r.Header.Set("Content-Type", "text/xml")
		}
		return r, p.sign(r, body)
	}, route53Busy)
	if err != nil {
		return route53Answer{}, err
	}
	return readRoute53(p.api, got)
}

// zone returns the path of the public zone. There may be private ones with the same name.
func (p *route53) zone(ctx context.Context, zone string) (path string, err error) {
	query := url.Values{"dnsname": {zone + "."}, "maxitems": {"100"}}
	for range maxPages {
		got, err := p.ask(ctx, http.MethodGet, "/hostedzonesbyname", query, nil)
		if err != nil {
			return "", err
		}
		for _, z := range got.Zones {
			if isZone(z.Name, zone) && !z.Private {
				return "/hostedzone/" + url.PathEscape(strings.TrimPrefix(z.ID, "/hostedzone/")) + "/rrset", nil
			}
		}
		// They are sorted, beginning with that name.
		if !got.IsTruncated || !isZone(got.NextName, zone) {
			break
		}
		query.Set("dnsname", got.NextName)
		query.Set("hostedzoneid", strings.TrimPrefix(got.NextZone, "/hostedzone/"))
	}
	return "", errNoZone("the key needs route53:ListHostedZonesByName, and the zone must be a public one")
}

// values returns the record set of a name, or nil if there is none.
func (p *route53) values(ctx context.Context, path, name string) (*route53Set, error) {
	got, err := p.ask(ctx, http.MethodGet, path, url.Values{"name": {name + "."}, "type": {"TXT"}, "maxitems": {"1"}}, nil)
	if err != nil || len(got.Sets) == 0 || got.Sets[0].Type != "TXT" || !isZone(got.Sets[0].Name, name) {
		return nil, err
	}
	if got.Sets[0].SetIdentifier != "" {
		return nil, errors.New("the name has a routing policy, which a challenge cannot be beside")
	}
	return &got.Sets[0], nil
}

// change replaces a set with the result of of; nil means no set. An equal set is left
// alone.
func (p *route53) change(ctx context.Context, zone, name string, of func(old *route53Set) *route53Set) (id string, err error) {
	err = p.alone(ctx, func() error {
		id, err = p.changeAlone(ctx, zone, name, of)
		return err
	})
	return id, err
}

func (p *route53) changeAlone(ctx context.Context, zone, name string, of func(old *route53Set) *route53Set) (id string, err error) {
	path, err := p.zone(ctx, zone)
	if err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		old, err := p.values(ctx, path, name)
		if err != nil {
			return "", err
		}
		set := of(old)
		if set == old {
			return "", nil
		}
		batch := route53Batch{XMLNS: route53XML}
		if old != nil {
			batch.Changes = append(batch.Changes, route53Change{"DELETE", *old})
		}
		if set != nil {
			batch.Changes = append(batch.Changes, route53Change{"CREATE", *set})
		}
		body, err := xml.Marshal(batch)
		if err != nil {
			return "", err
		}
		got, err := p.ask(ctx, http.MethodPost, path+"/", nil, append([]byte(xml.Header), body...))
		if !isCode(err, "InvalidChangeBatch") || try == changeTries {
			return got.Change.ID, err
		}
		if err := p.pause(ctx, firstPause<<min(try-1, 2)); err != nil {
			return "", err
		}
	}
}

func (p *route53) add(ctx context.Context, zone, name, value string) error {
	v := route53Value{`"` + value + `"`}
	id, err := p.change(ctx, zone, name, func(old *route53Set) *route53Set {
		if old == nil {
			return &route53Set{Name: name + ".", Type: "TXT", TTL: route53TTL, Values: []route53Value{v}}
		}
		if slices.Contains(old.Values, v) {
			return old
		}
		set := *old
		set.Values = append(slices.Clone(old.Values), v)
		return &set
	})
	if err != nil || id == "" {
		return err
	}
	return p.synced(ctx, id)
}

// synced waits until all name servers have a change.
func (p *route53) synced(ctx context.Context, id string) error {
	for range syncFor {
		got, err := p.ask(ctx, http.MethodGet, "/change/"+url.PathEscape(strings.TrimPrefix(id, "/change/")), nil, nil)
		if err != nil || got.Change.Status == "INSYNC" {
			return err
		}
		if err := p.pause(ctx, syncPause); err != nil {
			return err
		}
	}
	return nil
}

func (p *route53) remove(ctx context.Context, zone, name, value string) error {
	v := route53Value{`"` + value + `"`}
	_, err := p.change(ctx, zone, name, func(old *route53Set) *route53Set {
		if old == nil || !slices.Contains(old.Values, v) {
			return old
		}
		set := *old
		set.Values = slices.DeleteFunc(slices.Clone(old.Values), func(o route53Value) bool { return o == v })
		if len(set.Values) == 0 {
			return nil
		}
		return &set
	})
	return err
}
