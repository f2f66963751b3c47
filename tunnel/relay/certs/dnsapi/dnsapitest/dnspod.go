package dnsapitest

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// dnspodAgent matches what DNSPod requires of a client: its name, its version and an
// address.
var dnspodAgent = regexp.MustCompile(`^[A-Za-z][A-Za-z ]*/\S+ \([^@() ]+@[^@() ]+\)$`)

// DNSPod answers like DNSPod's API with tokens.
func DNSPod(z *Zones, id, token, line string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := strings.Trim(r.URL.Path, "/")
		z.serve(w, action, func(w http.ResponseWriter) {
			switch {
			case r.Method != http.MethodPost:
				dnspodError(w, "2", "Method must be POST")
			case !dnspodAgent.MatchString(r.UserAgent()):
				z.refuse("the user agent is " + r.UserAgent())
				dnspodError(w, "-8", "The account is locked for its user agent")
			case r.PostFormValue("login_token") != id+","+token || r.URL.RawQuery != "":
				z.refuse("the token is wrong")
				dnspodError(w, "-1", "Login failed, token "+r.PostFormValue("login_token")+" is invalid")
			case r.PostFormValue("format") != "json":
				dnspodError(w, "6", "This stand-in speaks JSON alone")
			default:
				z.dnspod(w, r, action, line)
			}
		})
	})
}

func (z *Zones) dnspod(w http.ResponseWriter, r *http.Request, action, line string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	offset, _ := strconv.Atoi(r.PostFormValue("offset"))
	if action == "Domain.List" {
		var list []map[string]any
		for i, name := range z.names {
			if strings.Contains(name, r.PostFormValue("keyword")) {
				list = append(list, map[string]any{"id": i + 1, "name": name, "punycode": name, "status": "enable"}) // a number here
			}
		}
		if list = page(list, offset, z.PageSize); len(list) == 0 {
			dnspodError(w, "9", "No domains")
			return
		}
		dnspodResult(w, "domains", list)
		return
	}
	number, err := strconv.Atoi(r.PostFormValue("domain_id"))
	if err != nil || number < 1 || number > len(z.names) {
		dnspodError(w, "6", "Domain id invalid")
		return
	}
	zone := z.names[number-1]
	name := full(r.PostFormValue("sub_domain"), zone)
	switch action {
	case "Record.List":
		var list []map[string]any
		for _, rec := range z.records[zone] {
			if r.PostFormValue("sub_domain") == "" || rec.Name == name {
				list = append(list, map[string]any{"id": rec.ID, "name": rest(rec.Name, zone), "type": rec.Type, "value": rec.Value, "ttl": strconv.Itoa(rec.TTL), "line": line}) // a string here
			}
		}
		if list = page(list, offset, z.PageSize); len(list) == 0 {
			dnspodError(w, "10", "No records")
			return
		}
		dnspodResult(w, "records", list)
	case "Record.Create":
		ttl, _ := strconv.Atoi(r.PostFormValue("ttl"))
		switch {
		case r.PostFormValue("record_line") != line:
			dnspodError(w, "26", "Record line invalid")
		case r.PostFormValue("record_type") != "TXT" || r.PostFormValue("value") == "":
			dnspodError(w, "34", "Record value invalid")
		case ttl < 600:
			dnspodError(w, "32", "Record TTL out of range")
		case z.has(zone, name, "TXT", r.PostFormValue("value")):
			dnspodError(w, "104", "Record already exists, no need to add it again")
		default:
			z.changes++
			dnspodResult(w, "record", map[string]any{"id": z.add(zone, Record{Name: name, Type: "TXT", Value: r.PostFormValue("value"), TTL: ttl}), "name": r.PostFormValue("sub_domain")})
		}
	case "Record.Remove":
		if !z.drop(zone, r.PostFormValue("record_id")) {
			dnspodError(w, "8", "Record id invalid")
			return
		}
		z.changes++
		dnspodResult(w, "record", nil)
	default:
		dnspodError(w, "-7", "There is no "+action)
	}
}

func dnspodResult(w http.ResponseWriter, key string, value any) {
	writeJSON(w, http.StatusOK, map[string]any{"status": map[string]string{"code": "1", "message": "Action completed successful"}, key: value})
}

// dnspodError answers with an error, which has status 200 as well.
func dnspodError(w http.ResponseWriter, code, message string) {
	writeJSON(w, http.StatusOK, map[string]any{"status": map[string]string{"code": code, "message": message}})
}
