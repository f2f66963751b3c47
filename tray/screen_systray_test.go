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
		"one of the runtime": func() { var none []int; none[len(none)]++ },
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
