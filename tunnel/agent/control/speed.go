package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"

	"adit/internal/goodput"
	"adit/tunnel/wire"
)

// SpeedIn measures how many bytes per second arrive from the relay.
func (c *Client) SpeedIn(ctx context.Context) (float64, error) {
	res, err := c.send(ctx, nil, http.MethodGet, wire.PathSpeed, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return 0, problem(res.StatusCode, body)
	}
	return goodput.Receive(res.Body)
}

// SpeedOut measures how many bytes per second arrive at the relay.
func (c *Client) SpeedOut(ctx context.Context) (float64, error) {
	res, err := c.send(ctx, nil, http.MethodPost, wire.PathSpeed, goodput.Source())
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, problem(res.StatusCode, body)
	}
	var speed wire.Speed
	if err := json.Unmarshal(body, &speed); err != nil || speed.BytesPerSecond < 0 || speed.BytesPerSecond > math.MaxInt32*1e3 {
		return 0, fmt.Errorf("the relay's answer to POST %s does not parse", wire.PathSpeed)
	}
	return speed.BytesPerSecond, nil
}
