package sentence

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesThatCannotBeReadAreSaidOnce(t *testing.T) {
	dir := t.TempDir()
	_, none := os.ReadFile(filepath.Join(dir, "none"))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no file":     {none, "geo.database: there is no file f; is the name right?"},
		"no right":    {&fs.PathError{Op: "open", Path: "f", Err: fs.ErrPermission}, "geo.database: the user that the relay runs as may not read f; give it the right to"},
		"a wrong one": {&fs.PathError{Op: "read", Path: "f", Err: errors.New("input/output error")}, "geo.database: f cannot be read: input/output error"},
		"else":        {errors.New("too long"), "geo.database: too long"},
	} {
		if got := File("geo.database", "f", c.err); got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}

func TestAPortInUseIsSaidByItsKey(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	_, err = net.Listen("tcp", addr)
	want := "edge_http_listen: another program has TCP " + addr + "; end it, or set another edge_http_listen"
	if got := Listen("edge_http_listen", addr, err); got.Error() != want || !errors.Is(got, err) {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := Listen("edge_http_listen", addr, errors.New("no more files")); !strings.HasPrefix(got.Error(), "edge_http_listen: no more files") {
		t.Errorf("got %v", got)
	}
}
