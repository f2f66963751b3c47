package agent

import "context"

// Diagnose looks at what a session needs and says what it found.
func (a *Agent) Diagnose(ctx context.Context) []Check { return nil }
