package embedded

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// Redis starts a miniredis on a free loopback port, in memory only. Its TIME
// is the real time and its TTLs run out with it. It returns the address and a
// stop function, which may be called twice.
func Redis() (addr string, stop func(), err error) {
	srv := miniredis.NewMiniRedis()
	srv.ClockTTL(true)
	if err := srv.Start(); err != nil {
		return "", nil, fmt.Errorf("start the embedded Redis server: %w", err)
	}
	return srv.Addr(), srv.Close, nil
}
