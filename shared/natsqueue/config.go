package natsqueue

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Config is where NATS is and how much it may keep. A zero value means the
// default that its field names.
type Config struct {
	// URL is one or more server addresses, separated by commas.
	URL string `envconfig:"NATS_URL" required:"true"`
	// Creds is the path of a credentials file, or its content; default none.
	Creds string `envconfig:"NATS_CREDS" secret:"true"`
	// Replicas is the number of copies of a stream that is created; default 1.
	Replicas int `envconfig:"NATS_REPLICAS"`
	// ClaimsBytesMax, OrdersBytesMax and DeadBytesMax bound the streams that
	// are created; default 1 GiB, 1 GiB, 256 MiB.
	ClaimsBytesMax int64 `envconfig:"NATS_CLAIMS_BYTES_MAX"`
	OrdersBytesMax int64 `envconfig:"NATS_ORDERS_BYTES_MAX"`
	DeadBytesMax   int64 `envconfig:"NATS_DEAD_BYTES_MAX"`
	// AckWait is when an unanswered claim is delivered again, for a consumer
	// that is created; default 30 s. After a kill claims are hidden that long.
	AckWait time.Duration `envconfig:"NATS_ACK_WAIT"`
	// PublishTimeout is when an unanswered publish is given up; default 5 s.
	PublishTimeout time.Duration `envconfig:"NATS_PUBLISH_TIMEOUT"`
	// PublishPendingMax bounds the events published but not yet answered;
	// default 20,000.
	PublishPendingMax int64 `envconfig:"NATS_PUBLISH_PENDING_MAX"`
	// ClaimsPerMessage bounds the claims that share a message of stream CLAIMS;
	// default 100. It must be 1 where something else than nats-bridge delivers
	// them that knows no batches.
	ClaimsPerMessage int `envconfig:"NATS_CLAIMS_PER_MESSAGE"`
}

// The bounds of a configuration.
const (
	replicasMax = 5
	bytesMin    = 64 << 10
	ackWaitMin  = time.Second
	// claimsPerMessageMax keeps the largest claims within messageSizeMax.
	claimsPerMessageMax = 500
)

// Validate refuses what cannot work.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.URL == "":
		return errors.New("NATS_URL is empty")
	case c.Replicas < 1 || c.Replicas > replicasMax:
		return fmt.Errorf("NATS_REPLICAS is %d, must be 1 to %d", c.Replicas, replicasMax)
	case min(c.ClaimsBytesMax, c.OrdersBytesMax, c.DeadBytesMax) < bytesMin:
		return fmt.Errorf("NATS_CLAIMS_BYTES_MAX, NATS_ORDERS_BYTES_MAX and NATS_DEAD_BYTES_MAX must be at least %d", bytesMin)
	case c.AckWait < ackWaitMin:
		return fmt.Errorf("NATS_ACK_WAIT is %s, must be at least %s", c.AckWait, ackWaitMin)
	case c.ClaimsPerMessage < 1 || c.ClaimsPerMessage > claimsPerMessageMax:
		return fmt.Errorf("NATS_CLAIMS_PER_MESSAGE is %d, must be 1 to %d", c.ClaimsPerMessage, claimsPerMessageMax)
	case c.PublishTimeout < time.Millisecond || c.PublishPendingMax < 1:
		return errors.New("NATS_PUBLISH_TIMEOUT and NATS_PUBLISH_PENDING_MAX must be positive")
	}
	return nil
}

func (c Config) withDefaults() Config {
	setDefault(&c.Replicas, 1)
	setDefault(&c.ClaimsBytesMax, 1<<30)
	setDefault(&c.OrdersBytesMax, 1<<30)
	setDefault(&c.DeadBytesMax, 256<<20)
	setDefault(&c.AckWait, 30*time.Second)
	setDefault(&c.PublishTimeout, 5*time.Second)
	setDefault(&c.PublishPendingMax, 20_000)
	setDefault(&c.ClaimsPerMessage, 100)
	return c
}

func setDefault[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// How the connection behaves when the broker is away. A lost peer is noticed
// within pingsMissed+1 pings, a peer that takes no bytes within writeTimeout.
const (
	dialTimeout      = 2 * time.Second
	writeTimeout     = 2 * time.Second
	pingInterval     = 5 * time.Second
	pingsMissed      = 2
	reconnectWaitMin = 100 * time.Millisecond
	reconnectWaitMax = 4 * time.Second
)

// options connect for ever, and let no message wait in the client for a
// connection: what cannot be sent now fails now, and is sent again by whoever
// knows whether it still matters.
func (c Config) options(connected func()) []nats.Option {
	options := []nats.Option{
		nats.Name("seckill"),
		nats.Timeout(dialTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsMissed),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.ConnectHandler(func(*nats.Conn) { connected() }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			slog.Info("nats is connected again", "server", nc.ConnectedUrlRedacted())
			connected()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				slog.Warn("nats is disconnected", "error", err)
			}
		}),
	}
	switch {
	case strings.Contains(c.Creds, "-----BEGIN"):
		options = append(options, nats.UserCredentialBytes([]byte(c.Creds)))
	case c.Creds != "":
		options = append(options, nats.UserCredentials(c.Creds))
	}
	return options
}

// reconnectDelay doubles the wait with each round over all servers, and spreads
// it, so that a restarted broker does not meet all its clients in one instant.
func reconnectDelay(round int) time.Duration {
	wait := min(reconnectWaitMin<<min(round, 10), reconnectWaitMax)
	return wait/2 + rand.N(wait/2)
}
