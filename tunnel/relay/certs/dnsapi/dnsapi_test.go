package dnsapi

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libdns/libdns"

	"adit/tunnel/relay/certs/dnsapi/dnsapitest"
)

const (
	testKey    = "KEYIDEXAMPLE"
	testSecret = "s3cretOfTheHost-example"
	testZone   = "example.com"
	testName   = "_acme-challenge.tunnel"
	testFull   = testName + "." + testZone
)

// desk is a provider with the stand-in that it uses.
type desk struct {
	*Provider
	zones *dnsapitest.Zones

	mu     sync.Mutex
	pauses []time.Duration
}

func config(name string) Config {
	cfg := Config{Provider: name, Key: testKey, Secret: testSecret, Contact: "ops@example.com"}
	if name == Cloudflare {
		cfg.Key = ""
	}
	return cfg
}

func standIn(z *dnsapitest.Zones, name string) http.Handler {
	switch name {
	case Cloudflare:
		return dnsapitest.Cloudflare(z, testSecret)
	case Route53:
		return dnsapitest.Route53(z, testKey, testSecret, "us-east-1")
	case AliDNS:
		return dnsapitest.AliDNS(z, testKey, testSecret)
	}
	return dnsapitest.DNSPod(z, testKey, testSecret, "默认")
}

// open starts a stand-in whose lists need several pages, and creates the provider that
// uses it. Its pauses are recorded instead of waited for.
func open(tb testing.TB, name string) *desk {
	tb.Helper()
	z := dnsapitest.NewZones("an.example.com", "example.com.test", "my-example.com", "zone.example.com")
	for i := 0; name == Route53 && i < 3; i++ {
		z.AddPrivate(testZone)
	}
	z.AddPublic(testZone)
	return openOn(tb, name, z, standIn(z, name))
}

func openOn(tb testing.TB, name string, z *dnsapitest.Zones, handler http.Handler) *desk {
	tb.Helper()
	d := &desk{zones: z}
	url, ca := dnsapitest.Serve(tb, handler)
	cfg := config(name)
	cfg.Endpoint = url
	if name == Cloudflare {
		cfg.Endpoint += "/client/v4"
	}
	cfg.Roots = x509.NewCertPool()
	cfg.Roots.AppendCertsFromPEM(ca)
	p, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	d.Provider = p
	p.api.pause = func(ctx context.Context, length time.Duration) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pauses = append(d.pauses, length)
		return ctx.Err()
	}
	return d
}

func (d *desk) paused() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pauses)
}

func txt(value string) []libdns.Record {
	return []libdns.Record{libdns.RR{Type: "TXT", Name: testName, Data: value}}
}

func (d *desk) add(tb testing.TB, value string) {
	tb.Helper()
	got, err := d.AppendRecords(tb.Context(), testZone+".", txt(value))
	if err != nil || len(got) != 1 {
		tb.Errorf("add %s: got %d records, %v", value, len(got), err)
	}
}

func (d *desk) remove(tb testing.TB, value string) {
	tb.Helper()
	if _, err := d.DeleteRecords(tb.Context(), testZone+".", txt(value)); err != nil {
		tb.Errorf("remove %s: %v", value, err)
	}
}

func (d *desk) want(tb testing.TB, values ...string) {
	tb.Helper()
	if got := d.zones.Texts(testFull); !slices.Equal(got, values) {
		tb.Errorf("%s has %v, want %v", testFull, got, values)
	}
}

// each runs a test at each host.
func each(t *testing.T, test func(t *testing.T, d *desk)) {
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			d := open(t, name)
			test(t, d)
			for _, why := range d.zones.Refused() {
				t.Errorf("the stand-in refused a request: %s", why)
			}
		})
	}
}

func TestValuesComeAndGoOneByOne(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		before := d.zones.All()
		d.add(t, "one")
		d.add(t, "two")
		d.want(t, "one", "two")
		d.add(t, "one")
		d.want(t, "one", "two")
		d.remove(t, "one")
		d.want(t, "two")
		d.remove(t, "one")
		d.remove(t, "two")
		if after := d.zones.All(); !slices.Equal(before, after) {
			t.Errorf("other records have changed:\nbefore %v\nafter  %v", before, after)
		}
		if p := d.paused(); len(p) > 0 {
			t.Errorf("it paused %v with nothing wrong", p)
		}
	})
}

// A wildcard and its domain are proved at the same name, often at the same time.
func TestManyChallengesOfOneNameAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		var all sync.WaitGroup
		var values []string
		for i := range 5 {
			value := fmt.Sprintf("value-%d", i)
			values = append(values, value)
			all.Go(func() { d.add(t, value) })
		}
		all.Wait()
		d.want(t, values...)
		for _, value := range values[1:] {
			all.Go(func() { d.remove(t, value) })
		}
		all.Wait()
		d.want(t, "value-0")
	})
}

func TestRecordsOfOthersWithTheSameNameStay(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		for i := range 5 { // more than a page
			d.zones.Add(testZone, testFull, fmt.Sprintf("theirs-%d", i))
		}
		d.add(t, "ours")
		d.remove(t, "ours")
		d.want(t, "theirs-0", "theirs-1", "theirs-2", "theirs-3", "theirs-4")
	})
}

// At Route 53, the values of a name are one record set, which another node may change
// between reading and writing.
func TestRoute53KeepsWhatAnotherNodeAddsInBetween(t *testing.T) {
	d := open(t, Route53)
	d.zones.Before(func() { d.zones.Add(testZone, testFull, "of-another") })
	d.add(t, "ours")
	d.want(t, "of-another", "ours")
	d.zones.Before(func() { d.zones.Add(testZone, testFull, "later") })
	d.remove(t, "ours")
	d.want(t, "later", "of-another")
}

func TestTheApexOfADelegatedZone(t *testing.T) {
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			z := dnsapitest.NewZones("_acme-challenge.tunnel.example.com")
			d := openOn(t, name, z, standIn(z, name))
			record := []libdns.Record{libdns.RR{Type: "TXT", Name: "@", Data: "apex"}}
			if _, err := d.AppendRecords(t.Context(), "_acme-challenge.tunnel.example.com.", record); err != nil {
				t.Fatal(err)
			}
			if got := z.Texts("_acme-challenge.tunnel.example.com"); !slices.Equal(got, []string{"apex", "v=spf1 -all"}) {
				t.Errorf("got %v", got)
			}
			if _, err := d.DeleteRecords(t.Context(), "_acme-challenge.tunnel.example.com.", record); err != nil {
				t.Fatal(err)
			}
			if got := z.Texts("_acme-challenge.tunnel.example.com"); !slices.Equal(got, []string{"v=spf1 -all"}) {
				t.Errorf("after its removal: got %v", got)
			}
		})
	}
}

func TestOnlyChallengesAreChanged(t *testing.T) {
	for _, tt := range []struct {
		what   string
		zone   string
		record libdns.RR
	}{
		{"another type", testZone, libdns.RR{Type: "A", Name: testName, Data: "192.0.2.1"}},
		{"another name", testZone, libdns.RR{Type: "TXT", Name: "www", Data: "x"}},
		{"the apex", testZone, libdns.RR{Type: "TXT", Name: "@", Data: "x"}},
		{"out of the zone", testZone, libdns.RR{Type: "TXT", Name: "_acme-challenge.example.org.", Data: "x"}},
		{"no value", testZone, libdns.RR{Type: "TXT", Name: testName}},
		{"a value with quotes", testZone, libdns.RR{Type: "TXT", Name: testName, Data: `a" "b`}},
		{"a long value", testZone, libdns.RR{Type: "TXT", Name: testName, Data: strings.Repeat("x", 256)}},
	} {
		each(t, func(t *testing.T, d *desk) {
			t.Run(tt.what, func(t *testing.T) {
				for _, do := range []func(context.Context, string, []libdns.Record) ([]libdns.Record, error){d.AppendRecords, d.DeleteRecords} {
					if _, err := do(t.Context(), tt.zone+".", []libdns.Record{tt.record}); err == nil {
						t.Error("it was taken")
					}
				}
				if asked := d.zones.Asked(); len(asked) > 0 {
					t.Errorf("the host was asked %v", asked)
				}
			})
		})
	}
}

func TestAZoneThatTheAccountHasNot(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		_, err := d.AppendRecords(t.Context(), "nothere.test.", txt("x"))
		if err == nil || !strings.Contains(err.Error(), "zone nothere.test") || !strings.Contains(err.Error(), "no such zone") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWrongCredentialsAreSaidAndNotShown(t *testing.T) {
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			z := dnsapitest.NewZones(testZone)
			other := map[string]http.Handler{
				Cloudflare: dnsapitest.Cloudflare(z, "other"), Route53: dnsapitest.Route53(z, testKey, "other", "us-east-1"),
				AliDNS: dnsapitest.AliDNS(z, testKey, "other"), DNSPod: dnsapitest.DNSPod(z, testKey, "other", "默认"),
			}[name]
			d := openOn(t, name, z, other)
			_, err := d.AppendRecords(t.Context(), testZone+".", txt("x"))
			if err == nil || !strings.Contains(err.Error(), "code ") {
				t.Fatalf("got %v, want the host's code", err)
			}
			for _, shown := range []string{err.Error(), fmt.Sprint(d.Provider), fmt.Sprintf("%+v %#v %s %q", d.Provider, d.Provider, d.Provider, d.Provider), fmt.Sprintf("%+v %#v", d.host, *d.Provider)} {
				if strings.Contains(shown, testSecret) {
					t.Errorf("the secret is shown: %s", shown)
				}
			}
			if p := d.paused(); len(p) > 0 || d.zones.Changes() > 0 {
				t.Errorf("it tried again after %v, or changed something", p)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	with := func(name string, change func(*Config)) Config {
		cfg := config(name)
		change(&cfg)
		return cfg
	}
	for want, cfg := range map[string]Config{
		`provider: "none" is not`:    {Provider: "none", Secret: "x"},
		"secret: must be one":        with(Cloudflare, func(c *Config) { c.Secret = "" }),
		"secret: must be one word":   with(Cloudflare, func(c *Config) { c.Secret = "a b" }),
		"secret: must be one word a": with(Route53, func(c *Config) { c.Secret = "a\nb" }),
		"key: is not for cloudflare": with(Cloudflare, func(c *Config) { c.Key = "x" }),
		"key: is required for route": with(Route53, func(c *Config) { c.Key = "" }),
		"key: is required for alidn": with(AliDNS, func(c *Config) { c.Key = "" }),
		"key: is required for dnspo": with(DNSPod, func(c *Config) { c.Key = "" }),
		"key: has characters":        with(AliDNS, func(c *Config) { c.Key = "a\r\nb" }),
		"endpoint: is not an https":  with(AliDNS, func(c *Config) { c.Endpoint = "http://alidns.aliyuncs.com" }),
		"endpoint: is not an https ": with(AliDNS, func(c *Config) { c.Endpoint = "https://a:b@alidns.aliyuncs.com" }),
		"region: is for route53":     with(DNSPod, func(c *Config) { c.Region = "x" }),
		`region: "a/b" is not a`:     with(Route53, func(c *Config) { c.Region = "a/b" }),
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	for _, name := range Names {
		if _, err := New(config(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			z := dnsapitest.NewZones(testZone)
			hung := make(chan struct{})
			d := openOn(t, name, z, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the client's going is not seen
				select {
				case hung <- struct{}{}:
				default:
				}
				<-r.Context().Done()
			}))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				_, err := d.AppendRecords(ctx, testZone+".", txt("x"))
				done <- err
			}()
			<-hung
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}
