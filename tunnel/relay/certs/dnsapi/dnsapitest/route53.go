package dnsapitest

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Route53 answers like Amazon Route 53's API of 2013-04-01.
func Route53(z *Zones, key, secret, region string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z.serve(w, r.Method+" "+r.URL.Path, func(w http.ResponseWriter) {
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err == nil {
				err = VerifySigV4(r, body, key, secret, region, "route53", time.Now())
			}
			if err != nil {
				z.refuse(err.Error())
				route53Error(w, http.StatusForbidden, "SignatureDoesNotMatch", err.Error())
				return
			}
			z.route53(w, r, body)
		})
	})
}

type setXML struct {
	Name          string
	Type          string
	SetIdentifier string `xml:",omitempty"`
	TTL           int
	Values        []string `xml:"ResourceRecords>ResourceRecord>Value"`
}

func (z *Zones) route53(w http.ResponseWriter, r *http.Request, body []byte) {
	path, ok := strings.CutPrefix(r.URL.Path, "/2013-04-01")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case ok && r.Method == http.MethodGet && path == "/hostedzonesbyname":
		z.route53Zones(w, r)
	case ok && len(parts) == 3 && parts[0] == "hostedzone" && parts[2] == "rrset":
		index, err := strconv.Atoi(strings.TrimPrefix(parts[1], "Z"))
		if err != nil || index < 0 || index >= len(z.names) || z.private[index] {
			route53Error(w, http.StatusNotFound, "NoSuchHostedZone", "No hosted zone found with ID: "+parts[1])
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(path, "/rrset/") {
			z.changing()
			z.route53Change(w, z.names[index], body)
			return
		}
		z.route53Sets(w, r, z.names[index])
	case ok && len(parts) == 2 && parts[0] == "change":
		writeXML(w, http.StatusOK, "<GetChangeResponse><ChangeInfo><Id>/change/"+parts[1]+"</Id><Status>INSYNC</Status></ChangeInfo></GetChangeResponse>")
	default:
		route53Error(w, http.StatusNotFound, "UnknownOperationException", "there is no "+r.URL.Path)
	}
}

// route53Zones lists zones sorted by their labels, from the last to the first.
func (z *Zones) route53Zones(w http.ResponseWriter, r *http.Request) {
	z.mu.Lock()
	defer z.mu.Unlock()
	type zone struct{ key, id, name string }
	backwards := func(name string) string {
		labels := strings.Split(strings.TrimSuffix(name, "."), ".")
		slices.Reverse(labels)
		return strings.Join(labels, ".")
	}
	var list []zone
	for i, name := range z.names {
		list = append(list, zone{backwards(name), fmt.Sprintf("Z%04d", i), name})
	}
	slices.SortFunc(list, func(a, b zone) int { return strings.Compare(a.key+" "+a.id, b.key+" "+b.id) })
	from := backwards(r.FormValue("dnsname")) + " " + r.FormValue("hostedzoneid")
	list = slices.DeleteFunc(list, func(a zone) bool { return a.key+" "+a.id < from })
	var b strings.Builder
	for _, a := range page(list, 0, z.PageSize) {
		index, _ := strconv.Atoi(a.id[1:])
		fmt.Fprintf(&b, "<HostedZone><Id>/hostedzone/Z%d</Id><Name>%s.</Name><Config><PrivateZone>%v</PrivateZone></Config></HostedZone>", index, a.name, z.private[index])
	}
	more := ""
	if len(list) > z.PageSize {
		next := list[z.PageSize]
		more = "<NextDNSName>" + next.name + ".</NextDNSName><NextHostedZoneId>" + next.id + "</NextHostedZoneId>"
	}
	writeXML(w, http.StatusOK, fmt.Sprintf("<ListHostedZonesByNameResponse><HostedZones>%s</HostedZones><IsTruncated>%v</IsTruncated>%s</ListHostedZonesByNameResponse>", b.String(), more != "", more))
}

// sets returns the record sets of a zone. The caller must hold mu.
func (z *Zones) sets(zone string) []setXML {
	var sets []setXML
	for _, r := range z.records[zone] {
		value := r.Value
		if r.Type == "TXT" {
			value = strconv.Quote(value)
		}
		i := slices.IndexFunc(sets, func(s setXML) bool { return s.Name == r.Name+"." && s.Type == r.Type })
		if i < 0 {
			sets = append(sets, setXML{Name: r.Name + ".", Type: r.Type, TTL: r.TTL, Values: []string{value}})
			continue
		}
		sets[i].Values = append(sets[i].Values, value)
	}
	slices.SortFunc(sets, func(a, b setXML) int { return strings.Compare(a.Name+" "+a.Type, b.Name+" "+b.Type) })
	return sets
}

func (z *Zones) route53Sets(w http.ResponseWriter, r *http.Request, zone string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	from := r.FormValue("name") + " " + r.FormValue("type")
	sets := slices.DeleteFunc(z.sets(zone), func(s setXML) bool { return s.Name+" "+s.Type < from })
	size, _ := strconv.Atoi(r.FormValue("maxitems"))
	var b strings.Builder
	for _, s := range page(sets, 0, min(size, z.PageSize)) {
		fmt.Fprintf(&b, "<ResourceRecordSet><Name>%s</Name><Type>%s</Type><TTL>%d</TTL><ResourceRecords>", s.Name, s.Type, s.TTL)
		for _, v := range s.Values {
			b.WriteString("<ResourceRecord><Value>")
			_ = xml.EscapeText(&b, []byte(v))
			b.WriteString("</Value></ResourceRecord>")
		}
		b.WriteString("</ResourceRecords></ResourceRecordSet>")
	}
	writeXML(w, http.StatusOK, "<ListResourceRecordSetsResponse><ResourceRecordSets>"+b.String()+"</ResourceRecordSets><IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>")
}

// route53Change applies all changes of a batch or none.
func (z *Zones) route53Change(w http.ResponseWriter, zone string, body []byte) {
	var in struct {
		XMLName xml.Name `xml:"https://route53.amazonaws.com/doc/2013-04-01/ ChangeResourceRecordSetsRequest"`
		Changes []struct {
			Action string
			Set    setXML `xml:"ResourceRecordSet"`
		} `xml:"ChangeBatch>Changes>Change"`
	}
	if err := xml.Unmarshal(body, &in); err != nil || len(in.Changes) == 0 {
		route53Error(w, http.StatusBadRequest, "MalformedInput", fmt.Sprint("the batch cannot be read: ", err))
		return
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	before := slices.Clone(z.records[zone])
	for _, c := range in.Changes {
		sets := z.sets(zone)
		i := slices.IndexFunc(sets, func(s setXML) bool { return s.Name == c.Set.Name && s.Type == c.Set.Type })
		fault := ""
		switch {
		case !inZone(strings.TrimSuffix(c.Set.Name, "."), zone):
			fault = "is not permitted in zone " + zone
		case c.Action == "CREATE" && i >= 0:
			fault = "it already exists"
		case c.Action == "DELETE" && i < 0:
			fault = "it was not found"
		case c.Action == "DELETE" && (sets[i].TTL != c.Set.TTL || !slices.Equal(sets[i].Values, c.Set.Values)):
			fault = "the values provided do not match the current values"
		case c.Action != "CREATE" && c.Action != "DELETE" && c.Action != "UPSERT":
			fault = "there is no action " + c.Action
		}
		if fault != "" {
			z.records[zone] = before
			writeXML(w, http.StatusBadRequest, "<InvalidChangeBatch><Messages><Message>Tried "+c.Action+" "+c.Set.Name+" TXT: "+fault+"</Message></Messages></InvalidChangeBatch>")
			return
		}
		z.records[zone] = slices.DeleteFunc(slices.Clone(z.records[zone]), func(r Record) bool { return r.Name+"." == c.Set.Name && r.Type == c.Set.Type })
		if c.Action == "DELETE" {
			continue
		}
		for _, v := range c.Set.Values {
			value, err := strconv.Unquote(v)
			if err != nil {
				value = v
			}
			z.add(zone, Record{Name: strings.TrimSuffix(c.Set.Name, "."), Type: c.Set.Type, Value: value, TTL: c.Set.TTL})
		}
	}
	z.changes++
	writeXML(w, http.StatusOK, "<ChangeResourceRecordSetsResponse><ChangeInfo><Id>/change/C"+strconv.Itoa(z.changes)+"</Id><Status>PENDING</Status></ChangeInfo></ChangeResourceRecordSetsResponse>")
}

func route53Error(w http.ResponseWriter, status int, code, message string) {
	writeXML(w, status, "<ErrorResponse><Error><Type>Sender</Type><Code>"+code+"</Code><Message>"+message+"</Message></Error><RequestId>1</RequestId></ErrorResponse>")
}

func writeXML(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, xml.Header+body)
}
