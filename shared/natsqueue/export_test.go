package natsqueue

import "time"

// UntilFullSecond is how long a delayed message waits.
func UntilFullSecond(now time.Time, delay time.Duration) time.Duration {
	return untilFullSecond(now, delay)
}

// Listeners counts those who want to hear of changes.
func (q *Queue) Listeners() int {
	q.listening.Lock()
	defer q.listening.Unlock()
	return len(q.listeners)
}

// ServerURL is where the queue is connected.
func (q *Queue) ServerURL() string { return q.conn.ConnectedUrl() }
