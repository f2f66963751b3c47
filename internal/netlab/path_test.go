package netlab

import (
	"strings"
	"testing"
	"time"
)

func TestPathsAreReadAndSaidAlike(t *testing.T) {
	for text, want := range map[string]Path{
		"rtt=50ms,loss=1%,rate=100Mbit": {RTT: 50 * time.Millisecond, Loss: 0.01, Rate: 12_500_000},
		"rtt=0s,loss=0%":                {},
		"rtt=5ms,loss=0.1%,reorder=10%,rate=2.5Gbit,buffer=20ms,mtu=1280,tcp=cubic": {
			RTT: 5 * time.Millisecond, Loss: 0.001, Reorder: 0.1, Rate: 312_500_000, Buffer: 20 * time.Millisecond, MTU: 1280, TCP: "cubic",
		},
		"rtt=1s,loss=100%,rate=64kbit": {RTT: time.Second, Loss: 1, Rate: 8000},
	} {
		got, err := ParsePath(text)
		if err != nil || got != want {
			t.Errorf("ParsePath(%q): got %+v and %v, want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q says of itself %q", text, got)
		}
	}
}

func TestPathsThatAreWrongAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "key=value",
		"rtt":                "key=value",
		"rtt=50":             "rtt",
		"rtt=-1ms":           "rtt",
		"rtt=1ms,rtt=2ms":    "twice",
		"loss=1":             "loss",
		"loss=101%":          "loss",
		"loss=NaN%":          "loss",
		"rate=100":           "rate",
		"rate=NaNMbit":       "rate",
		"rate=1e300Gbit":     "rate",
		"rate=0Mbit":         "rate",
		"mtu=100":            "mtu",
		"tcp=../x":           "tcp",
		"delay=1ms":          "the keys are",
		"rtt=50ms, loss=1%":  "the keys are",
		"buffer=2m,rtt=50ms": "buffer",
	} {
		if got, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePath(%q): got %+v and %v, want an error about %q", text, got, err, want)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("rtt=50ms,loss=1%,rate=100Mbit")
	f.Add("rtt=5ms,reorder=10%,buffer=20ms,mtu=1280,tcp=cubic,rate=2.5Gbit")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		if _, err := ParsePath(p.String()); err != nil {
			t.Errorf("%q says of itself what is refused: %v", text, err)
		}
	})
}
