package daemon

import (
	"context"
	"testing"

	"adit/localapi/client"
	"adit/service"
)

func TestNothingIsRunBesideAServiceThatStands(t *testing.T) {
	for state, want := range map[string]bool{
		service.NotInstalled: true, "": true,
		service.Stopped: false, service.Starting: false, service.Running: false, service.Failed: false,
	} {
		if got := mayRunInside(service.Status{State: state}); got != want {
			t.Errorf("%q: got %v, want %v", state, got, want)
		}
	}
}

// A daemon that another runs is left to it: adit start is started again by whoever
// ended it. Of another short form's, a short form takes the place.
func TestShortFormTakesThePlaceOfAnotherShortForm(t *testing.T) {
	for runBy, want := range map[string]bool{"": false, "adit http": true} {
		began := false
		in := &Embedded{run: func(ctx context.Context, _ string, ready func()) error {
			began = true
			ready()
			<-ctx.Done()
			return nil
		}}
		if got := in.TakeOver(t.Context(), client.Status{RunBy: runBy}); got != want || began != want {
			t.Errorf("%q: got %v, begun %v; want %v", runBy, got, began, want)
		}
		if err := in.End(); err != nil {
			t.Error(err)
		}
	}
}
