package agent

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/forward"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/session"
	"adit/tunnel/agent/state"
	"adit/tunnel/agent/turn"
	"adit/tunnel/agent/visits"
	"adit/tunnel/wire"
)

// lookAgain is how long an origin that receives packets but does not answer is still assumed to be
// at the address to which its name resolved; after that, the name is looked up again.
const lookAgain = 15 * time.Second

// relayWait is how long a control-plane request waits for the relay.
const relayWait = 15 * time.Second

// Agent keeps the session and the tunnels. Its methods may be called concurrently; those that
// change something run one at a time, and a second one fails immediately with
// refusal.CodeControlBusy while another runs.
type Agent struct {
	cfg     Config
	log     *slog.Logger
	started time.Time

	// The parts, which know nothing of the agent.
	state     *state.Folder
	feed      *feed.Feed
	inspector *inspect.Inspector
	origins   *origin.Dialer
	forward   *forward.Forwarder
	dialer    *session.Dialer
	reports   *control.Reports
	visits    *visits.Visits

	turn     turn.Turn  // held by the one control-plane request that runs, or by own work
	speeding sync.Mutex // held while the speed is measured
	saving   sync.Mutex // held while a state file is written
	// publishing is held while changes are published, so that they are published in order.
	publishing sync.Mutex
	wake       chan struct{} // tells the keeper to look again; room for one
	wakeSecond chan struct{} // tells keepSecond to look again; room for one
	activity   chan struct{} // tells that visitors came or went; room for one
	unheld     chan struct{} // tells keepHeld to look again; room for one
	unsaved    atomic.Bool   // the last try to write tunnels.json did not succeed

	mu        sync.Mutex
	login     login
	cur       *live       // the session in use; nil without one
	second    *live       // a session with another node of the relay; nil without one
	nodes     []wire.Node // the relay's, as last told
	unserved  []*live     // sessions that Run has not begun to serve
	served    []*live     // sessions that Run serves, those that were left too
	standing  standing    // with the relay
	reconnect bool        // a person asked for a new session
	notices   []string    // what went wrong with the state files
	moves     moves
	tunnels   map[string]*tunnel
	granted   map[string]state.Grant // of declared tunnels that are not here now
	releases  map[string]bool        // claims to give back
	making    string                 // id of the tunnel that is being created
	closed    bool
	lastState string        // as last published
	changed   chan struct{} // closed by the next change; nil while nobody waits
}

// poke makes the keeper check for work.
func (a *Agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// wantSecond makes keepSecond check for work.
func (a *Agent) wantSecond() {
	select {
	case a.wakeSecond <- struct{}{}:
	default:
	}
}

// servesLocked reports whether l is in use under the current token. For a moment after a token has
// been replaced, the session in use still belongs to the previous one, and may be with another
// relay.
func (a *Agent) servesLocked(l *live) bool {
	return (a.cur == l || a.second == l) && l.epoch == a.login.epoch
}
