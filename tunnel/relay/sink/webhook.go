package sink

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// webhook posts batches as JSON.
type webhook struct {
	name, node, url string
	secret          []byte
	client          *http.Client
}

func newWebhook(o Options) *webhook {
	return &webhook{
		name: o.Name, node: o.Node, url: o.Config.URL, secret: []byte(o.Config.Secret),
		client: &http.Client{
			Transport: &http.Transport{
				Proxy: nil, DialContext: dialer(o.Private).DialContext, TLSHandshakeTimeout: 10 * time.Second,
				MaxIdleConns: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
			},
			// A redirect could lead to a place that the sink must not reach.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (h *webhook) close() { h.client.CloseIdleConnections() }

// body is what a webhook receives.
type body struct {
	Sink   string  `json:"sink"`
	Node   string  `json:"node"`
	Events []Event `json:"events"`
}

// Sign returns the value of Adit-Signature for a body at a given time.
func Sign(secret, text []byte, at time.Time) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(text)
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func (h *webhook) send(ctx context.Context, id string, batch []Event) error {
	text, err := json.Marshal(body{h.name, h.node, batch})
	if err != nil {
		return permanent{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(text))
	if err != nil {
		return permanent{err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "adit-relay")
	req.Header.Set("Adit-Delivery", id)
	if len(h.secret) > 0 {
		req.Header.Set("Adit-Signature", Sign(h.secret, text, time.Now()))
	}
	resp, err := h.client.Do(req)
	if err != nil {
		// Leave out the URL, which may contain a secret of the receiver.
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return fmt.Errorf("post to the webhook: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300:
		return nil
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnsupportedMediaType, s == http.StatusUnprocessableEntity:
		return permanent{fmt.Errorf("the webhook answered %s", resp.Status)}
	}
	// Other failures are retried, since an operator may fix them in the meantime: a wrong
	// URL (404, redirects), a wrong secret (401, 403).
	return fmt.Errorf("the webhook answered %s", resp.Status)
}
