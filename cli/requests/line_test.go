package requests

import (
	"strings"
	"testing"

	"adit/cli/terminal"
	"adit/localapi/client"
)

func TestRequestLineKeepsToItsColumns(t *testing.T) {
	r := client.RequestSummary{Kind: "http", State: "done", Method: "GET", Path: "/" + strings.Repeat("页", 80), Status: 200, DurationMillis: 3}
	for _, columns := range []int{32, 40, 41, 80, 96, 300} {
		line := Line(r, client.Tunnel{}, columns)
		if want := min(columns, LineColumns); terminal.Pad(line, want) != line || terminal.Pad(line, want+1) == line {
			t.Errorf("%d columns: got %q", columns, line)
		}
		if !strings.HasSuffix(line, "3.0 ms") || !strings.Contains(line, "…") {
			t.Errorf("%d columns: got %q, want that it is cut and the time is there", columns, line)
		}
	}
}

func TestRequestsOfAWildcardTellTheirHost(t *testing.T) {
	r := client.RequestSummary{Kind: "http", State: "done", Method: "GET", Host: "ann.shop.example", Path: "/cart", Status: 200}
	for domain, want := range map[string]string{"shop.example": " GET /cart ", "*.shop.example": " GET ann.shop.example/cart ", "*.shop": " GET ann.shop.example/cart "} {
		if line := Line(r, client.Tunnel{Domain: domain}, LineColumns); !strings.Contains(line, want) {
			t.Errorf("%s: got %q, want%q", domain, line, want)
		}
	}
}
