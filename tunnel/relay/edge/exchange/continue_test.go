package exchange

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"adit/tunnel/relay/shape"
)

// TestInterimAnswersDoNotMeetNetHTTPsOwn sends interim answers before, during and after the
// first read of a body.
func TestInterimAnswersDoNotMeetNetHTTPsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		own       bool
		continues bool // the origin says 100 before the body is read
		want      []int
	}{
		"HTTP/1":                     {true, false, []int{103, 103}},
		"HTTP/1, the origin goes on": {true, true, []int{103, 100, 103, 103}},
		"HTTP/3":                     {false, false, []int{103, 103, 100, 103}},
		"HTTP/3, the origin goes on": {false, true, []int{103, 100, 103, 103}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				visitor, sends := io.Pipe()
				body := &countedBody{
					body: visitor, ctx: t.Context(), w: &Writer{meter: new(shape.Meter)}, asked: true,
					word: word{own: c.own},
				}
				var got []int
				say := func(status int) { body.word.interim(status, func(status int) { got = append(got, status) }) }
				say(http.StatusEarlyHints)
				if c.continues {
					say(http.StatusContinue)
				}
				go func() {
					for b := make([]byte, 1); ; {
						if _, err := body.Read(b); err != nil {
							return
						}
					}
				}()
				synctest.Wait()
				say(http.StatusEarlyHints)
				say(http.StatusContinue)
				io.WriteString(sends, "a")
				synctest.Wait()
				say(http.StatusEarlyHints)
				sends.Close()
				synctest.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}
