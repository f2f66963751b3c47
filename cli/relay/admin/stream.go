package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Open starts reading a response that continues for as long as somebody reads it.
func (a *API) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := a.open(ctx, "", http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readReply(resp, nil)
	}
	return resp.Body, nil
}

// Stream reads a long response that is not a JSON document.
func (a *API) Stream(ctx context.Context, path string, f func(io.Reader) error) error {
	body, err := a.Open(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	return f(answerReader{body})
}

// answerReader says in its errors that the relay's response broke off.
type answerReader struct{ io.Reader }

func (a answerReader) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) { // readers compare that
		err = fmt.Errorf("read the relay's answer: %w", err)
	}
	return n, err
}
