package docstest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adit/tunnel/relay/signature"
)

// TestWebhookProvidersAreListed holds that those whose webhooks can be verified are in
// the document, in the console's API and in the list of its pages, and that nobody else is.
func TestWebhookProvidersAreListed(t *testing.T) {
	want := slices.Sorted(slices.Values(signature.Providers()))
	for file, c := range map[string]struct{ from, to, name string }{
		"docs/relay/webhooks.md":                    {"| `provider` |", "\n\n", "(?m)^\\| `([a-z]+)` \\|"},
		"tunnel/relay/console/openapi.yaml":         {"provider:\n          type: string\n          enum: [", "]", `([a-z]+)`},
		"frontend/src/shared/policy/webhookform.ts": {"export const providerNames", "};", `(?m)^  ([a-z]+): '`},
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), c.from)
		list, _, _ := strings.Cut(rest, c.to)
		if !found {
			t.Errorf("%s has no list", file)
		}
		var got []string
		for _, m := range regexp.MustCompile(c.name).FindAllStringSubmatch(list, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", file, got, want)
		}
	}
	comparison, err := os.ReadFile(filepath.Join(root, "docs/comparison.md"))
	if err != nil {
		t.Fatal(err)
	}
	if row := fmt.Sprintf("| yes; %d, and HMAC |", len(want)-1); !strings.Contains(string(comparison), row) {
		t.Errorf("the comparison has another number of providers: want %s", row)
	}
}
