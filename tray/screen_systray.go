//go:build !darwin || cgo

package tray

import (
	"context"
	"runtime"
	"sync"

	"fyne.io/systray"
)

// bar draws with the systray library, of which a process can have only one instance.
type bar struct {
	clicks chan<- Action

	mu    sync.Mutex
	lines []line // guarded
	items []Item // what lines show; guarded
	end   func() // ends the goroutines of lines; guarded
	wg    sync.WaitGroup
}

// line is a drawn Item. Its action may change while it is shown.
type line struct {
	item  *systray.MenuItem // nil for a separator
	mu    *sync.Mutex
	act   *Action // guarded by mu
	lines []line
}

func newScreen(clicks chan<- Action) screen { return &bar{clicks: clicks, end: func() {}} }

func (b *bar) loop(ctx context.Context, ready func()) error {
	stop := context.AfterFunc(ctx, systray.Quit)
	defer stop()
	systray.Run(func() {
		// The panel reads the icon when the item appears: without one, some panels show a gap until
		// the first change.
		systray.SetTitle("adit")
		ready()
	}, nil)
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.wg.Wait()
	return nil
}

func (b *bar) show(p picture) {
	b.mu.Lock()
	defer b.mu.Unlock()
	paint(func() {
		systray.SetTemplateIcon(iconBytes(p.icon, "template", "png"), iconBytes(p.icon, p.look, iconKind))
		systray.SetTooltip(p.title)
	})
	if b.lines != nil && sameShape(b.items, p.items) {
		change(b.lines, b.items, p.items)
	} else {
		b.end()
		systray.ResetMenu()
		done := make(chan struct{})
		b.end = sync.OnceFunc(func() { close(done) })
		b.lines = b.add(nil, p.items, done)
	}
	b.items = p.items
}

// paint sets what the panel shows. On Linux, the library panics with the connection's error if the
// session bus has just gone; the tray is then about to end by itself, and there is nothing left to
// draw on.
func paint(draw func()) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case runtime.Error:
			panic(v)
		case error:
		default:
			panic(v)
		}
	}()
	draw()
}

func (b *bar) add(parent *systray.MenuItem, items []Item, done <-chan struct{}) []line {
	var lines []line
	for _, it := range items {
		if it.Separator {
			if parent == nil {
				systray.AddSeparator()
			} else {
				parent.AddSeparator()
			}
			lines = append(lines, line{})
			continue
		}
		title := escapeLabel(it.Title)
		var item *systray.MenuItem
		switch {
		case parent != nil && it.Checkable:
			item = parent.AddSubMenuItemCheckbox(title, "", it.Checked)
		case parent != nil:
			item = parent.AddSubMenuItem(title, "")
		case it.Checkable:
			item = systray.AddMenuItemCheckbox(title, "", it.Checked)
		default:
			item = systray.AddMenuItem(title, "")
		}
		if it.Disabled {
			item.Disable()
		}
		act := it.Action
		l := line{item: item, mu: new(sync.Mutex), act: &act}
		b.wg.Go(func() { b.listen(l, done) })
		l.lines = b.add(item, it.Items, done)
		lines = append(lines, l)
	}
	return lines
}

// listen forwards the clicks on one line until the line is gone.
func (b *bar) listen(l line, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-l.item.ClickedCh:
		}
		l.mu.Lock()
		action := *l.act
		l.mu.Unlock()
		if action.Kind == None {
			continue
		}
		select {
		case b.clicks <- action:
		case <-done:
			return
		}
	}
}

func change(lines []line, old, items []Item) {
	for i, it := range items {
		l := lines[i]
		if l.item == nil {
			continue
		}
		l.mu.Lock()
		*l.act = it.Action
		l.mu.Unlock()
		if it.Title != old[i].Title {
			l.item.SetTitle(escapeLabel(it.Title))
		}
		if it.Disabled != old[i].Disabled {
			if it.Disabled {
				l.item.Disable()
			} else {
				l.item.Enable()
			}
		}
		if it.Checked != old[i].Checked {
			if it.Checked {
				l.item.Check()
			} else {
				l.item.Uncheck()
			}
		}
		change(l.lines, old[i].Items, it.Items)
	}
}
