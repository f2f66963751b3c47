package dnsapitest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AliDNS answers like Alibaba Cloud DNS's API of 2015-01-09.
func AliDNS(z *Zones, key, secret string) http.Handler {
	var mu sync.Mutex
	nonces := make(map[string]bool)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := r.Header.Get("X-Acs-Action")
		z.serve(w, action, func(w http.ResponseWriter) {
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err == nil {
				err = VerifyACS3(r, body, key, secret, time.Now())
			}
			if err != nil || r.Header.Get("X-Acs-Version") != "2015-01-09" {
				z.refuse(r.Header.Get("X-Acs-Version") + " " + errText(err))
				alidnsError(w, http.StatusBadRequest, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation.")
				return
			}
			nonce := r.Header.Get("X-Acs-Signature-Nonce")
			mu.Lock()
			again := nonces[nonce]
			nonces[nonce] = true
			mu.Unlock()
			if again {
				z.refuse("a nonce came twice")
				alidnsError(w, http.StatusBadRequest, "SignatureNonceUsed", "Specified signature nonce was used already.")
				return
			}
			z.alidns(w, r, action)
		})
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (z *Zones) alidns(w http.ResponseWriter, r *http.Request, action string) {
	q := r.URL.Query()
	number, _ := strconv.Atoi(q.Get("PageNumber"))
	from := (max(number, 1) - 1) * z.PageSize
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := q.Get("DomainName")
	if zone != "" && !slices.Contains(z.names, zone) {
		alidnsError(w, http.StatusBadRequest, "InvalidDomainName.NoExist", "The specified domain name does not exist.")
		return
	}
	switch action {
	case "DescribeDomains":
		var list []map[string]string
		for _, name := range z.names {
			if strings.Contains(name, q.Get("KeyWord")) {
				list = append(list, map[string]string{"DomainName": name, "PunyCode": name})
			}
		}
		writeJSON(w, http.StatusOK, map[string]any{"TotalCount": len(list), "PageSize": z.PageSize, "Domains": map[string]any{"Domain": page(list, from, z.PageSize)}})
	case "DescribeSubDomainRecords":
		var list []map[string]any
		for _, rec := range z.records[zone] {
			if rec.Name == strings.TrimPrefix(q.Get("SubDomain"), "@.") && (q.Get("Type") == "" || rec.Type == q.Get("Type")) {
				list = append(list, map[string]any{"RecordId": rec.ID, "RR": rest(rec.Name, zone), "Type": rec.Type, "Value": rec.Value, "TTL": rec.TTL, "DomainName": zone})
			}
		}
		writeJSON(w, http.StatusOK, map[string]any{"TotalCount": len(list), "PageSize": z.PageSize, "DomainRecords": map[string]any{"Record": page(list, from, z.PageSize)}})
	case "AddDomainRecord":
		name, ttl := full(q.Get("RR"), zone), 600
		if q.Has("TTL") {
			ttl, _ = strconv.Atoi(q.Get("TTL"))
		}
		switch {
		case zone == "" || q.Get("RR") == "" || q.Get("Value") == "":
			alidnsError(w, http.StatusBadRequest, "MissingParameter", "A parameter that is mandatory is missing.")
		case ttl < 600:
			alidnsError(w, http.StatusBadRequest, "DomainRecordTTLNotSupport", "The TTL is not supported by the edition.")
		case z.has(zone, name, q.Get("Type"), q.Get("Value")):
			alidnsError(w, http.StatusBadRequest, "DomainRecordDuplicate", "The DNS record already exists.")
		default:
			z.changes++
			writeJSON(w, http.StatusOK, map[string]string{"RequestId": "1", "RecordId": z.add(zone, Record{Name: name, Type: q.Get("Type"), Value: q.Get("Value"), TTL: ttl})})
		}
	case "DeleteDomainRecord":
		for _, zone := range z.names {
			if z.drop(zone, q.Get("RecordId")) {
				z.changes++
				writeJSON(w, http.StatusOK, map[string]string{"RequestId": "1", "RecordId": q.Get("RecordId")})
				return
			}
		}
		alidnsError(w, http.StatusBadRequest, "DomainRecordNotBelongToUser", "The DNS record does not exist or does not belong to you.")
	default:
		alidnsError(w, http.StatusNotFound, "InvalidAction.NotFound", "Specified api is not found.")
	}
}

func alidnsError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]string{"RequestId": "1", "HostId": "alidns", "Code": code, "Message": message})
}
