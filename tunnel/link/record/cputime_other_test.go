//go:build !unix

package record

func cpuTime() int64 { return 0 }
