package relay

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"

	"adit/tunnel/relay/config"
)

func TestRelayFlagsOverrideOnlyWhatTheyName(t *testing.T) {
	set := pflag.NewFlagSet("start", pflag.ContinueOnError)
	flags := newStartFlags(set)
	cfg := config.Config{Domain: "file.example", HTTP3: true, TCPPorts: "1-2", NATS: config.NATS{URLs: []string{"nats://file"}}}
	want := cfg
	flags.over(&cfg)
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("without a flag: got %+v, want %+v", cfg, want)
	}
	err := set.Parse([]string{
		"--domain", "flag.example", "--http3=false", "--geo_database", "a.mmdb", "--public_https_port", "8443",
		"--nats_urls", "nats://a,nats://b", "--tls_cert", "c", "--tls_key", "k", "--any_domain",
	})
	if err != nil {
		t.Fatal(err)
	}
	flags.over(&cfg)
	want.Domain, want.HTTP3, want.Geo.Database, want.PublicHTTPSPort = "flag.example", false, "a.mmdb", 8443
	want.NATS.URLs, want.TLSCert, want.TLSKey, want.AnyDomain = []string{"nats://a", "nats://b"}, "c", "k", true
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got %+v, want %+v", cfg, want)
	}
}
