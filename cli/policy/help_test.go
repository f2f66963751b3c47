package policy

import (
	"reflect"
	"strings"
	"testing"

	"adit/tunnel/relay/policy"
)

// TestPolicyHelpNamesEveryField holds the help on policies to what a policy may say.
func TestPolicyHelpNamesEveryField(t *testing.T) {
	words := strings.FieldsFunc(Fields, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
	named := map[string]bool{}
	for _, w := range words {
		named[w] = true
	}
	for f := range reflect.TypeFor[policy.Document]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !named[name] {
			t.Errorf("the field %s is not in the help", name)
		}
	}
}
