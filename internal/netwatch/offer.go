package netwatch

// offer tells p, unless so much is waiting that one look answers all.
func offer(ch chan<- piece, p piece) {
	select {
	case ch <- p:
	default:
	}
}
