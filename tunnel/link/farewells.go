package link

import "adit/tunnel/link/farewell"

// openFarewells opens the file of farewells, if one is configured. Without it, agents only notice
// by themselves that a relay was killed.
func (l *Listener) openFarewells() *farewell.Book {
	if l.cfg.Farewells == "" {
		return nil
	}
	var err error
	if l.words, err = farewell.Open(l.cfg.Farewells, l.log); err != nil {
		l.log.Warn("after a kill some agents notice it later", "error", err)
	}
	return l.words
}

func (l *Listener) closeFarewells() {
	if l.words == nil {
		return
	}
	if err := l.words.Close(); err != nil {
		l.log.Warn("close the farewells", "error", err)
	}
}
