// Package embedded runs small servers inside the process: NATS (the real
// server as a library) and a Redis look-alike; a MySQL look-alike is in its
// own package beside it. They make the whole system run with nothing
// installed; functions never link them.
package embedded
