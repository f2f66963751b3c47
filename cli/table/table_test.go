package table

import (
	"strings"
	"testing"
)

func TestANarrowTableDoesWithoutWhatComesFirst(t *testing.T) {
	for columns, want := range map[int]string{
		0:  "ID  NAME         KIND\n1   home·server  tcp\n", // as many as it takes
		40: "ID  NAME         KIND\n1   home·server  tcp\n",
		20: "NAME         KIND\nhome·server  tcp\n",
		16: "NAME        KIND\nhome·serv…  tcp\n",
		5:  "NAME    KIND\nhome·…  tcp\n",
	} {
		rows := New("ID|NAME|KIND", Drop("ID"), Squeeze("NAME", 6))
		rows.Add(1, "home\x1bserver", "tcp")
		var b strings.Builder
		if rows.Write(&b, columns); b.String() != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, b.String(), want)
		}
	}
}

func TestAnIDStandsForANameThatDoesNotSayWhich(t *testing.T) {
	rows := New("ID|NAME", Identify("ID", "NAME"))
	for _, row := range [][2]string{{"t_1", "web"}, {"t_2", "web"}, {"t_3", ""}, {"t_4", "ssh"}} {
		rows.Add(row[0], row[1])
	}
	var b strings.Builder
	rows.Write(&b, 5)
	if want := "NAME\nt_1\nt_2\nt_3\nssh\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
