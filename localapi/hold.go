package localapi

import (
	"net/http"
	"time"
)

// holdTunnel holds a tunnel for as long as the response lasts: until the holder leaves, the tunnel
// is deleted, or the daemon ends. The system closes the connection of a holder that is killed, so
// no hold is ever left behind.
func (s *Server) holdTunnel(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	hold, err := s.cfg.Agent.Hold(pathID(r))
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := s.streams.holds.take("%d tunnels are held; release one first"); err != nil {
		return err
	}
	defer s.streams.holds.release()
	ctx, out, end, err := openStream(w, r)
	if err != nil {
		return err
	}
	defer end()
	tick := time.NewTicker(keepAliveEvery)
	defer tick.Stop()
	for text := ": held\n\n"; ; text = stillHere {
		if err := out.comment(text); err != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hold.Gone:
			return nil
		case <-tick.C:
		}
	}
}
