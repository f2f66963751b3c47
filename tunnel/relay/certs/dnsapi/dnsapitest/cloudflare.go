package dnsapitest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Cloudflare answers like version 4 of Cloudflare's API, under /client/v4.
func Cloudflare(z *Zones, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z.serve(w, r.Method+" "+r.URL.Path, func(w http.ResponseWriter) { z.cloudflare(w, r, token) })
	})
}

func (z *Zones) cloudflare(w http.ResponseWriter, r *http.Request, token string) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		z.refuse("the token is wrong")
		cloudflareError(w, http.StatusForbidden, 9109, "Invalid access token")
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/client/v4/zones")
	if !ok {
		cloudflareError(w, http.StatusNotFound, 7003, "Could not route to "+r.URL.Path)
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	query := r.URL.Query()
	z.mu.Lock()
	defer z.mu.Unlock()
	if path == "" {
		var zones []map[string]string
		for i, name := range z.names {
			if query.Get("name") == "" || query.Get("name") == name {
				zones = append(zones, map[string]string{"id": "z" + strconv.Itoa(i), "name": name, "status": "active"})
			}
		}
		cloudflareList(w, zones, query, z.PageSize)
		return
	}
	index, err := strconv.Atoi(strings.TrimPrefix(parts[0], "z"))
	if err != nil || index < 0 || index >= len(z.names) || len(parts) < 2 || parts[1] != "dns_records" {
		cloudflareError(w, http.StatusNotFound, 7003, "Could not route to "+r.URL.Path)
		return
	}
	zone := z.names[index]
	switch {
	case r.Method == http.MethodGet && len(parts) == 2:
		var records []map[string]any
		for _, rec := range z.records[zone] {
			if name := query.Get("name.exact"); (name == "" || name == rec.Name) && (query.Get("type") == "" || query.Get("type") == rec.Type) {
				records = append(records, map[string]any{"id": rec.ID, "name": rec.Name, "type": rec.Type, "content": cloudflareContent(rec), "ttl": rec.TTL})
			}
		}
		cloudflareList(w, records, query, z.PageSize)
	case r.Method == http.MethodPost && len(parts) == 2:
		z.cloudflareAdd(w, r, zone)
	case r.Method == http.MethodDelete && len(parts) == 3:
		if !z.drop(zone, parts[2]) {
			cloudflareError(w, http.StatusNotFound, 81044, "Record does not exist.")
			return
		}
		z.changes++
		cloudflareResult(w, map[string]string{"id": parts[2]}, 0)
	default:
		cloudflareError(w, http.StatusMethodNotAllowed, 10405, "Method not allowed")
	}
}

// cloudflareContent returns a value as the host shows it: texts keep their quotes.
func cloudflareContent(r Record) string {
	if r.Type == "TXT" {
		return strconv.Quote(r.Value)
	}
	return r.Value
}

func (z *Zones) cloudflareAdd(w http.ResponseWriter, r *http.Request, zone string) {
	var in struct {
		Type, Name, Content string
		TTL                 int
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Content-Type") != "application/json" {
		cloudflareError(w, http.StatusBadRequest, 6003, "Invalid request body")
		return
	}
	value, err := strconv.Unquote(in.Content)
	switch {
	case err != nil || in.Type != "TXT" || !inZone(in.Name, zone):
		cloudflareError(w, http.StatusBadRequest, 9005, "Content for TXT record is invalid.")
	case in.TTL != 1 && in.TTL < 60:
		cloudflareError(w, http.StatusBadRequest, 9021, "TTL must be between 60 and 86400 seconds, or 1 for Automatic.")
	case z.has(zone, in.Name, in.Type, value):
		cloudflareError(w, http.StatusBadRequest, 81058, "An identical record already exists.")
	default:
		z.changes++
		cloudflareResult(w, map[string]string{"id": z.add(zone, Record{Name: in.Name, Type: in.Type, Value: value, TTL: in.TTL})}, 0)
	}
}

func cloudflareList[T any](w http.ResponseWriter, list []T, query url.Values, size int) {
	number, _ := strconv.Atoi(query.Get("page"))
	number = max(number, 1)
	items := slices.Clone(page(list, (number-1)*size, size))
	if items == nil {
		items = []T{}
	}
	cloudflareResult(w, items, (len(list)+size-1)/size)
}

func cloudflareResult(w http.ResponseWriter, result any, pages int) {
	writeJSON(w, http.StatusOK, map[string]any{
		"success": true, "errors": []any{}, "messages": []any{}, "result": result, "result_info": map[string]int{"total_pages": pages},
	})
}

func cloudflareError(w http.ResponseWriter, status, code int, message string) {
	writeJSON(w, status, map[string]any{"success": false, "errors": []any{map[string]any{"code": code, "message": message}}, "messages": []any{}, "result": nil})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
