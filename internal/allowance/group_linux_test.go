package allowance

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryOfAGroupIsTheLeastOfAllGroups(t *testing.T) {
	const none = int64(math.MaxInt64)
	tests := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no control groups", nil, none},
		{"version 2 in a container", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n",
		}, 64 << 20},
		{"version 2 as a service, bounded by its slice", map[string]string{
			"proc/self/cgroup": "0::/adit.slice/adit-relay.service\n",
			"sys/fs/cgroup/adit.slice/adit-relay.service/memory.max": "max\n",
			"sys/fs/cgroup/adit.slice/memory.max":                    "268435456\n",
		}, 256 << 20},
		{"version 1 in a container that sees the host's path", map[string]string{
			"proc/self/cgroup":                           "12:cpu,cpuacct:/x\n4:memory:/libpod_parent/libpod-1\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n",
		}, 64 << 20},
		{"version 1 without a bound", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, none},
		{"what no kernel writes", map[string]string{
			"proc/self/cgroup": "0::/../../etc\n:\nx\n0::/\n", "sys/fs/cgroup/memory.max": "-5\n", "etc/memory.max": "1\n",
		}, none},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				file := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := ofGroup(root); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
