// Package embedded runs small servers inside the process: NATS (the real
// server as a library), a Redis and a MySQL look-alike. They make the whole
// system run with nothing installed; functions never link them.
package embedded
