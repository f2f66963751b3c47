package definition

import (
	"errors"
	"slices"
	"testing"
)

func TestMistakesOfVisits(t *testing.T) {
	for _, c := range []struct {
		specs []Visit
		index int
		field string
	}{
		{[]Visit{{"nas/ssh", "", "2222"}, {"nas", "", "2223"}}, 1, "tunnel"},
		{[]Visit{{"nas/ssh", "", "0.0.0.0:2222"}}, 0, "listen"},
		{[]Visit{{"nas/ssh", "", ""}}, 0, "listen"},
		{[]Visit{{"nas/ssh", "", "2222"}, {"nas/rdp", "tcp", "localhost:2222"}}, 1, "listen"},
		{[]Visit{{"nas/ssh", "http", "2222"}}, 0, "type"},
		{make([]Visit, 1), 0, "tunnel"},
	} {
		_, err := CheckVisits(c.specs)
		var wrong *DeclareError
		if !errors.As(err, &wrong) || wrong.Index != c.index || wrong.Err.Field != c.field {
			t.Errorf("%v: %v, want a mistake of %s in %d", c.specs, err, c.field, c.index)
		}
	}
}

func TestVisitsInTheirUsualForm(t *testing.T) {
	got, err := CheckVisits([]Visit{{"adit://NAS/ssh", "", "2222"}, {"nas/game", "udp", "localhost:2222"}})
	want := []Visit{{"nas/ssh", "tcp", "127.0.0.1:2222"}, {"nas/game", "udp", "127.0.0.1:2222"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v: tcp and udp have ports of their own", got, err, want)
	}
}
