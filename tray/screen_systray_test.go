//go:build !darwin || cgo

package tray

import (
	"errors"
	"testing"
)

func TestABusThatGoesWhileDrawingIsNoPanic(t *testing.T) {
	paint(func() { panic(errors.New("write: broken pipe")) })
	for name, draw := range map[string]func(){
		"a mistake":          func() { panic("mistake") },
		"one of the runtime": func() { var m map[string]int; m["a"] = 1 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was hidden", name)
				}
			}()
			paint(draw)
		}()
	}
}
