package dnsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// cloudflare uses version 4 of Cloudflare's API. The token needs the permissions
// Zone:Read and DNS:Edit for the zone.
type cloudflare struct {
	*api
	sign func(*http.Request)
}

const cloudflareTTL = 60 // the shortest that every plan allows

// The codes of Cloudflare's errors for a record that already exists.
const (
	cloudflareExists    = "81057"
	cloudflareIdentical = "81058"
)

func newCloudflare(a *api, cfg Config) *cloudflare {
	token := cfg.Secret
	return &cloudflare{a, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }}
}

type cloudflareRecord struct {
	ID      string `json:"id,omitempty"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Content string `json:"content"`
	TTL     int    `json:"ttl"`
}

type cloudflareZone struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// cloudflareAnswer is the envelope of all answers.
type cloudflareAnswer struct {
	Success bool `json:"success"`
	Errors  []struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	Result json.RawMessage `json:"result"`
	Info   struct {
		TotalPages int `json:"total_pages"`
	} `json:"result_info"`
}

// readCloudflare parses an answer into result, which may be nil, and returns how many
// pages there are.
func readCloudflare(a *api, got answer, result any) (pages int, err error) {
	var body cloudflareAnswer
	err = json.Unmarshal(got.body, &body)
	switch {
	case err != nil && got.status >= 300:
		return 0, a.refuse(got.status, "", "")
	case err != nil:
		return 0, a.unreadable(got.status, err)
	case len(body.Errors) > 0:
		return 0, a.refuse(got.status, strconv.Itoa(body.Errors[0].Code), body.Errors[0].Message)
	case !body.Success || got.status >= 300:
		return 0, a.refuse(got.status, "", "")
	case result == nil:
		return body.Info.TotalPages, nil
	}
	if err := json.Unmarshal(body.Result, result); err != nil {
		return 0, a.unreadable(got.status, err)
	}
	return body.Info.TotalPages, nil
}

func (c *cloudflare) ask(ctx context.Context, method, path string, query url.Values, body, result any) (pages int, err error) {
	var data []byte
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	got, err := c.call(ctx, func() (*http.Request, error) {
		r, err := http.NewRequest(method, c.url(path, query), bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Accept", "application/json")
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		c.sign(r)
		return r, nil
	}, nil)
	if err != nil {
		return 0, err
	}
	return readCloudflare(c.api, got, result)
}

// listCloudflare passes all items of a list to use, page by page, until use returns
// false.
func listCloudflare[T any](ctx context.Context, c *cloudflare, path string, query url.Values, use func(T) bool) error {
	query.Set("per_page", "50")
	for page := 1; page <= maxPages; page++ {
		query.Set("page", strconv.Itoa(page))
		var items []T
		pages, err := c.ask(ctx, http.MethodGet, path, query, nil, &items)
		if err != nil {
			return err
		}
		for _, item := range items {
			if !use(item) {
				return nil
			}
		}
		if page >= pages {
			return nil
		}
	}
	return nil
}

// zone returns the path of a zone's records.
func (c *cloudflare) zone(ctx context.Context, zone string) (path string, err error) {
	var id string
	err = listCloudflare(ctx, c, "/zones", url.Values{"name": {zone}}, func(z cloudflareZone) bool {
		if isZone(z.Name, zone) {
			id = z.ID
		}
		return id == ""
	})
	if err == nil && id == "" {
		err = errNoZone("the token needs Zone:Read and DNS:Edit for it")
	}
	return "/zones/" + url.PathEscape(id) + "/dns_records", err
}

func (c *cloudflare) add(ctx context.Context, zone, name, value string) error {
	return c.alone(ctx, func() error { return c.addAlone(ctx, zone, name, value) })
}

func (c *cloudflare) addAlone(ctx context.Context, zone, name, value string) error {
	path, err := c.zone(ctx, zone)
	if err != nil {
		return err
	}
	record := cloudflareRecord{Type: "TXT", Name: name, Content: strconv.Quote(value), TTL: cloudflareTTL}
	if _, err = c.ask(ctx, http.MethodPost, path, nil, record, nil); isCode(err, cloudflareExists, cloudflareIdentical) {
		return nil
	}
	return err
}

func (c *cloudflare) remove(ctx context.Context, zone, name, value string) error {
	return c.alone(ctx, func() error { return c.removeAlone(ctx, zone, name, value) })
}

func (c *cloudflare) removeAlone(ctx context.Context, zone, name, value string) error {
	path, err := c.zone(ctx, zone)
	if err != nil {
		return err
	}
	var ids []string
	err = listCloudflare(ctx, c, path, url.Values{"type": {"TXT"}, "name.exact": {name}}, func(r cloudflareRecord) bool {
		if r.Type == "TXT" && plain(r.Name) == name && isValue(r.Content, value) && r.ID != "" {
			ids = append(ids, r.ID)
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := c.ask(ctx, http.MethodDelete, path+"/"+url.PathEscape(id), nil, nil, nil)
		if err != nil && !isCode(err, "81044") { // it is gone
			return err
		}
	}
	return nil
}
