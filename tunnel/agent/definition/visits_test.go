package definition

import (
	"errors"
	"testing"
)

func TestMistakesOfVisits(t *testing.T) {
	for _, c := range []struct {
		specs []Visit
		index int
		field string
	}{
		{[]Visit{{"nas/ssh", "2222"}, {"nas", "2223"}}, 1, "tunnel"},
		{[]Visit{{"nas/ssh", "0.0.0.0:2222"}}, 0, "listen"},
		{[]Visit{{"nas/ssh", ""}}, 0, "listen"},
		{[]Visit{{"nas/ssh", "2222"}, {"nas/rdp", "localhost:2222"}}, 1, "listen"},
		{make([]Visit, 1), 0, "tunnel"},
	} {
		_, err := CheckVisits(c.specs)
		var wrong *DeclareError
		if !errors.As(err, &wrong) || wrong.Index != c.index || wrong.Err.Field != c.field {
			t.Errorf("%v: %v, want a mistake of %s in %d", c.specs, err, c.field, c.index)
		}
	}
}
