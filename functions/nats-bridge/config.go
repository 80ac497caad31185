package natsbridge

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Config is what an operator may set of this function.
type Config struct {
	// TargetURL is where the events are posted; Sink is the same under the
	// name that a Knative SinkBinding gives it. TargetURL wins.
	TargetURL string `envconfig:"TARGET_URL"`
	Sink      string `envconfig:"K_SINK"`
	// Secret is sent as bearer token; empty sends none.
	Secret string `envconfig:"EVENTS_SECRET" secret:"true"`
	// CronURL is where expiry-cron is triggered; empty leaves that to the
	// platform's own cron.
	CronURL string `envconfig:"CRON_URL"`
	// TickEvery is the pace of the triggers while there is something to watch.
	TickEvery time.Duration `envconfig:"TICK_EVERY" default:"10s"`
	// BatchMax bounds the events of one post.
	BatchMax int `envconfig:"BATCH_MAX" default:"500"`
	// PostsInFlight bounds the posts at the same time. One is enough while it
	// keeps up: the next is larger then. A target in trouble gets fewer, too.
	PostsInFlight int `envconfig:"POSTS_IN_FLIGHT" default:"4"`
	// PostTimeout bounds one post, cold start of the target included.
	PostTimeout time.Duration `envconfig:"POST_TIMEOUT" default:"25s"`
	// DrainTimeout is how long posts in flight may take when the bridge ends;
	// then their events are given back.
	DrainTimeout time.Duration `envconfig:"DRAIN_TIMEOUT" default:"20s"`
	// NotifyURL is told of each event of an order, one a post, signed with
	// NotifySecret by Standard Webhooks; empty tells nobody.
	NotifyURL    string `envconfig:"NOTIFY_URL"`
	NotifySecret string `envconfig:"NOTIFY_SECRET" secret:"true"`
	// AckWait is the consumer's, which the queue reads from the same variable.
	AckWait time.Duration `envconfig:"NATS_ACK_WAIT" default:"30s"`
}

// Validate refuses what cannot work.
func (c Config) Validate() error {
	if c.Target() == "" {
		return errors.New("TARGET_URL: must be set (or K_SINK)")
	}
	switch {
	case !isHTTP(c.Target()):
		return fmt.Errorf("TARGET_URL: %q is not an http or https URL", c.Target())
	case c.CronURL != "" && !isHTTP(c.CronURL):
		return fmt.Errorf("CRON_URL: %q is not an http or https URL", c.CronURL)
	case c.CronURL != "" && (c.TickEvery < 100*time.Millisecond || c.TickEvery > time.Minute):
		return errors.New("TICK_EVERY: must be 100ms to 1m")
	case c.NotifyURL != "" && !isHTTP(c.NotifyURL):
		return fmt.Errorf("NOTIFY_URL: %q is not an http or https URL", c.NotifyURL)
	case c.NotifyURL != "" && c.NotifySecret == "":
		return errors.New("NOTIFY_SECRET: must be set with NOTIFY_URL")
	case c.BatchMax < 1 || c.BatchMax > 1000:
		return errors.New("BATCH_MAX: must be 1 to 1000")
	case c.PostsInFlight < 1 || c.PostsInFlight > 256:
		return errors.New("POSTS_IN_FLIGHT: must be 1 to 256")
	case c.AckWait < time.Second:
		return errors.New("NATS_ACK_WAIT: must be at least 1s")
	case c.PostTimeout < 10*time.Millisecond || c.PostTimeout >= c.AckWait:
		return errors.New("POST_TIMEOUT: must be at least 10ms and less than NATS_ACK_WAIT")
	case c.DrainTimeout < 0 || c.DrainTimeout > 10*time.Minute:
		return errors.New("DRAIN_TIMEOUT: must be 0 to 10m")
	}
	return nil
}

// Target is where the events are posted.
func (c Config) Target() string {
	if c.TargetURL != "" {
		return c.TargetURL
	}
	return c.Sink
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
