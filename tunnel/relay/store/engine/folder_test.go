package engine

import "testing"

func TestRoomIsFound(t *testing.T) {
	if err := checkRoom(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := checkRoom(t.TempDir() + "/nowhere"); err == nil {
		t.Error("a folder that is not there takes data")
	}
}
