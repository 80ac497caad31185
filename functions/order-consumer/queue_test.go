package orderconsumer_test

import (
	"fmt"
	"strings"
	"testing"

	orderconsumer "seckill/functions/order-consumer"
	"seckill/shared/events"
	"seckill/shared/seckill"
)

// A delivery that is larger than the queue may be never comes any smaller: it is
// written as soon as nobody else waits, in as many transactions as it takes.
func TestDeliveryLargerThanTheQueueIsTaken(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.BatchMax, config.QueueMax = 2, 3
	orders := &fakeOrders{place: placeAll}
	h := orderconsumer.New(config, orders, &fakeRedis{answer: seckill.SettledDone})
	batch := make([]string, 5)
	for i := range batch {
		batch[i] = eventOf(claimOf("s1", fmt.Sprint("b", i)))
	}
	w := post(h, events.BatchContentType, "["+strings.Join(batch, ",")+"]")
	if got := results(t, w); got != "applied applied applied applied applied" {
		t.Errorf("verdicts are %s", got)
	}
	if fmt.Sprint(orders.sizes) != "[2 2 1]" {
		t.Errorf("transactions of %v", orders.sizes)
	}
}
