//go:build !cgo

package tray

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
)

// AppKit ends a program that draws on a thread other than the process's first. The main goroutine
// runs on that one now, and would leave it when it first waits.
func init() { runtime.LockOSThread() }

// statusBar draws with AppKit, called through the Objective-C runtime, so that building it needs no
// C compiler. AppKit is only used on the main thread: show merely stores the picture to be drawn
// and requests a call.
type statusBar struct {
	clicks chan<- Action

	mu      sync.Mutex
	next    picture  // guarded
	actions []Action // by the tag of their menu item, less first; guarded
	first   int      // guarded

	target objc.ID
	item   objc.ID
	ready  func()
	images map[Icon]objc.ID
}

// mostActions is how many of the newest actions can be clicked. A menu that is open stays as it was
// while others replace it, and its tags must not be reused for theirs.
const mostActions = 1024

// theBar is the bar that receives AppKit's calls: a class has no closures.
var theBar *statusBar

func newScreen(clicks chan<- Action) screen {
	return &statusBar{clicks: clicks, images: map[Icon]objc.ID{}}
}

func sel(name string) objc.SEL { return objc.RegisterName(name) }

func class(name string) objc.ID { return objc.ID(objc.GetClass(name)) }

func nsString(s string) objc.ID {
	return class("NSString").Send(sel("stringWithUTF8String:"), s)
}

func (b *statusBar) loop(ctx context.Context, ready func()) error {
	if _, err := purego.Dlopen("/System/Library/Frameworks/AppKit.framework/AppKit", purego.RTLD_GLOBAL|purego.RTLD_LAZY); err != nil {
		return err
	}
	theBar = b
	pool := class("NSAutoreleasePool").Send(sel("new"))
	defer pool.Send(sel("drain"))
	targetClass, err := objc.RegisterClass("AditTrayTarget", objc.GetClass("NSObject"), nil, nil, []objc.MethodDef{
		{Cmd: sel("clicked:"), Fn: func(_ objc.ID, _ objc.SEL, sender objc.ID) { theBar.clicked(sender) }},
		{Cmd: sel("draw:"), Fn: func(_ objc.ID, _ objc.SEL, _ objc.ID) { theBar.draw() }},
		{Cmd: sel("finish:"), Fn: func(_ objc.ID, _ objc.SEL, _ objc.ID) { finish() }},
	})
	if err != nil {
		return err
	}
	b.target = objc.ID(targetClass).Send(sel("new"))
	app := class("NSApplication").Send(sel("sharedApplication"))
	const accessory = 1 // in the bar alone, not in the Dock
	app.Send(sel("setActivationPolicy:"), accessory)
	const squareLength = -2.0
	b.item = class("NSStatusBar").Send(sel("systemStatusBar")).Send(sel("statusItemWithLength:"), squareLength)
	b.item.Send(sel("retain"))
	stop := context.AfterFunc(ctx, func() { b.later("finish:") })
	defer stop()
	ready()
	app.Send(sel("run"))
	class("NSStatusBar").Send(sel("systemStatusBar")).Send(sel("removeStatusItem:"), b.item)
	return nil
}

// finish ends the application's loop, which checks whether to end only after an event; so it posts
// one.
func finish() {
	app := class("NSApplication").Send(sel("sharedApplication"))
	app.Send(sel("stop:"), objc.ID(0))
	const applicationDefined = 15
	type point struct{ x, y float64 }
	event := class("NSEvent").Send(
		sel("otherEventWithType:location:modifierFlags:timestamp:windowNumber:context:subtype:data1:data2:"),
		applicationDefined, point{}, 0, 0.0, 0, objc.ID(0), int16(0), 0, 0)
	app.Send(sel("postEvent:atStart:"), event, true)
}

// later makes the main thread call a method of the target.
func (b *statusBar) later(method string) {
	b.target.Send(sel("performSelectorOnMainThread:withObject:waitUntilDone:"), sel(method), objc.ID(0), false)
}

func (b *statusBar) show(p picture) {
	b.mu.Lock()
	b.next = p
	b.mu.Unlock()
	b.later("draw:")
}

// draw shows the pending picture. It runs on the main thread.
func (b *statusBar) draw() {
	b.mu.Lock()
	p := b.next
	if old := len(b.actions) - mostActions; old > 0 {
		b.actions = slices.Delete(b.actions, 0, old)
		b.first += old
	}
	b.mu.Unlock()
	button := b.item.Send(sel("button"))
	button.Send(sel("setImage:"), b.image(p.icon))
	button.Send(sel("setToolTip:"), nsString(p.title))
	b.item.Send(sel("setMenu:"), b.menu(p.items))
}

// image returns a template image, which the bar colours by itself.
func (b *statusBar) image(icon Icon) objc.ID {
	if image, ok := b.images[icon]; ok {
		return image
	}
	png := iconBytes(icon, "template", "png")
	data := class("NSData").Send(sel("dataWithBytes:length:"), &png[0], len(png))
	image := class("NSImage").Send(sel("alloc")).Send(sel("initWithData:"), data)
	type size struct{ width, height float64 }
	image.Send(sel("setSize:"), size{18, 18})
	image.Send(sel("setTemplate:"), true)
	b.images[icon] = image
	return image
}

func (b *statusBar) menu(items []Item) objc.ID {
	menu := class("NSMenu").Send(sel("new")).Send(sel("autorelease"))
	menu.Send(sel("setAutoenablesItems:"), false)
	for _, it := range items {
		if it.Separator {
			menu.Send(sel("addItem:"), class("NSMenuItem").Send(sel("separatorItem")))
			continue
		}
		item := class("NSMenuItem").Send(sel("alloc")).Send(
			sel("initWithTitle:action:keyEquivalent:"), nsString(it.Title), sel("clicked:"), nsString("")).Send(sel("autorelease"))
		item.Send(sel("setTarget:"), b.target)
		item.Send(sel("setEnabled:"), !it.Disabled)
		if it.Checked {
			item.Send(sel("setState:"), 1)
		}
		b.mu.Lock()
		item.Send(sel("setTag:"), b.first+len(b.actions))
		b.actions = append(b.actions, it.Action)
		b.mu.Unlock()
		if len(it.Items) > 0 {
			item.Send(sel("setSubmenu:"), b.menu(it.Items))
		}
		menu.Send(sel("addItem:"), item)
	}
	return menu
}

// clicked runs on the main thread, which must not block.
func (b *statusBar) clicked(sender objc.ID) {
	tag := objc.Send[int](sender, sel("tag"))
	b.mu.Lock()
	var action Action
	if i := tag - b.first; i >= 0 && i < len(b.actions) {
		action = b.actions[i]
	}
	b.mu.Unlock()
	if action.Kind == None {
		return
	}
	select {
	case b.clicks <- action:
	default:
	}
}
