package localapi

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// benchmarkGet asks over kept connections, several at once, and reports how many
// answers come in a second and how long the slowest hundredth takes.
func benchmarkGet(b *testing.B, path string) {
	r := serve(b, nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var mu sync.Mutex
	var all []time.Duration
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		var own []time.Duration
		for pb.Next() {
			began := time.Now()
			resp, err := client.Get(r.url + path)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			own = append(own, time.Since(began))
			if resp.StatusCode != 200 {
				b.Errorf("got status %d", resp.StatusCode)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, own...)
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	}
}

func BenchmarkGetStatus(b *testing.B)    { benchmarkGet(b, "/api/v1/status") }
func BenchmarkGetEndpoints(b *testing.B) { benchmarkGet(b, "/api/v1/endpoints") }
