package visitor

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestPlainHeadsOfManyLinesAreNotRead matters because each line takes many times as much
// memory as it has bytes, and anybody may send one.
func TestPlainHeadsOfManyLinesAreNotRead(t *testing.T) {
	for lines, want := range map[int]int{100: http.StatusPermanentRedirect, 4000: http.StatusBadRequest} {
		near, far := net.Pipe()
		v := &Conn{Conn: far, leave: func() {}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			v.RefusePlain(func(*http.Request) string { return "https://shop.example.com/" })
		}()
		_ = near.SetDeadline(time.Now().Add(20 * time.Second))
		go func() {
			_, _ = io.WriteString(near, "GET / HTTP/1.1\nHost: shop.example.com\n"+strings.Repeat("a:\n", lines)+"\n")
		}()
		answer, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want {
			t.Errorf("%d lines: got status %d, want %d", lines, answer.StatusCode, want)
		}
		near.Close()
		<-done
	}
}
