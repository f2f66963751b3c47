package accesslog

import (
	"errors"
	"log/slog"
	"testing"

	"adit/tunnel/wire"
)

func TestAQuestionThatCannotBeAskedNamesItsField(t *testing.T) {
	log := New(&failingStore{}, slog.New(slog.DiscardHandler))
	for field, q := range map[string]Question{"address": {Address: "shop"}, "cursor": {Cursor: "x"}} {
		_, searched := log.Search(t.Context(), q)
		exported := log.Export(t.Context(), q, func(*wire.Access) error { return nil })
		followed := log.Follow(t.Context(), q, func([]wire.Access, int) error { return nil })
		for name, err := range map[string]error{"search": searched, "export": exported, "follow": followed} {
			if fault, ok := errors.AsType[*FieldError](err); !ok || fault.Field != field {
				t.Errorf("%s by %s: got %v", name, field, err)
			}
		}
	}
}

func TestWhatMatchesAQuestion(t *testing.T) {
	e := wire.Access{
		Endpoint: "ep_1", Key: "web", ClientID: "c_1", Node: "a", Host: "shop.relay.test", Method: "GET", User: "Ann@example.com",
		Path: "/cart/1", Status: 404, Refused: "deny", Country: "US-CA", Visitor: "203.0.113.7",
	}
	for name, c := range map[string]struct {
		q    Question
		want bool
	}{
		"everything":           {Question{}, true},
		"the host in any case": {Question{Host: "SHOP.relay.test"}, true},
		"the user in any case": {Question{User: "ann@EXAMPLE.com"}, true},
		"the path's beginning": {Question{Path: "/cart"}, true},
		"another path":         {Question{Path: "/cars"}, false},
		"the class of status":  {Question{Status: 4}, true},
		"another status":       {Question{Status: 403}, false},
		"the country":          {Question{Country: "us"}, true},
		"the region":           {Question{Country: "US-CA"}, true},
		"another country":      {Question{Country: "U"}, false},
		"no country":           {Question{Country: "none"}, false},
		"the network":          {Question{Address: "203.0.113.0/24"}, true},
		"another address":      {Question{Address: "203.0.113.8"}, false},
		"the rule":             {Question{Refused: "deny"}, true},
		"any rule":             {Question{Refused: "any"}, true},
		"in shadow":            {Question{Refused: "shadow"}, false},
		"let in":               {Question{Refused: "none"}, false},
		"another node":         {Question{Node: "b"}, false},
	} {
		f, err := filterOf(c.q)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := f.match(&e); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
