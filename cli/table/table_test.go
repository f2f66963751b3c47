package table

import (
	"strings"
	"testing"
)

// TestOneLongValueDoesNotSpreadTheOthers: where all is shown, a stranger's long path
// would have every line as long.
func TestOneLongValueDoesNotSpreadTheOthers(t *testing.T) {
	long := "GET shop.example.com/" + strings.Repeat("x", 2000)
	rows := New("TIME|REQUEST|IN")
	rows.Add("10:20", "GET shop.example.com/", "1 B")
	rows.Add("10:21", long, "2 B")
	rows.Add("10:22", "GET shop.example.com/a", "3 B")
	var b strings.Builder
	rows.Write(&b, 0)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 4 || !strings.Contains(lines[2], long+"  2 B") {
		t.Fatalf("the long value is not whole, or nothing follows it:\n%s", b.String())
	}
	if strings.Index(lines[1], "1 B") != strings.Index(lines[3], "3 B") || strings.Index(lines[0], "IN") != strings.Index(lines[1], "1 B") {
		t.Errorf("the columns do not stand below each other:\n%s\n%s\n%s", lines[0], lines[1], lines[3])
	}
	if len(lines[1]) > 200 {
		t.Errorf("another line has %d columns", len(lines[1]))
	}
}
