package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// shop runs one sale.
type shop struct {
	*deployment
	client  *client
	figures figures
	sale    string
	opens   time.Time
	winners []winner
}

// winner is a buyer who got a claim.
type winner struct{ buyer, claim string }

const (
	// openFor is how long the sale is open, payWindow how long a winner has to
	// pay: both short, so that the cron has something to do soon.
	openFor   = 30 * time.Second
	payWindow = 20 * time.Second
	// zeroMax bounds the way to zero, Knative's defaults included.
	zeroMax = 6 * time.Minute
	// settleMax bounds the way of a claim from zero to its order.
	settleMax = 2 * time.Minute
	sku       = "e2e"
)

func newShop(ctx context.Context, d *deployment) (*shop, error) {
	c, err := newClient(ctx, d.options)
	if err != nil {
		return nil, err
	}
	return &shop{deployment: d, client: c, sale: fmt.Sprintf("e2e-%d", time.Now().Unix())}, nil
}

// sell is the whole story.
func (s *shop) sell(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"the sale is made", s.put},
		{"everything sleeps", s.sleep},
		{"an item is looked at from zero", s.look},
		{"the sale opens, everybody claims from zero", s.rush},
		{"claims become orders", s.orders},
		{"some pay, some cancel", s.payAndCancel},
		{"the cron expires the others", s.expire},
		{"what is internal stays inside", s.inside},
		{"everything sleeps again", s.sleepAgain},
	}
	for _, step := range steps {
		fmt.Println(step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// put makes the item and a sale that opens after everything went to sleep.
func (s *shop) put(ctx context.Context) error {
	item := object{"sku": sku, "name": "E2E", "description": "", "image_url": ""}
	if _, err := s.tool(ctx, item, "item", "put", "/document/document.json"); err != nil {
		return err
	}
	s.opens = time.Now().Add(zeroMax).Truncate(time.Second)
	return s.putSale(ctx)
}

func (s *shop) putSale(ctx context.Context) error {
	_, err := s.tool(ctx, object{
		"id": s.sale, "sku": sku, "price_minor": 9900, "currency": "CNY", "units": s.units, "limit": 1,
		"opens_at": s.opens.Format(time.RFC3339), "closes_at": s.opens.Add(openFor).Format(time.RFC3339), "pay_window": payWindow.String(),
	}, "sale", "put", "/document/document.json")
	return err
}

// asleep fails while a function has a pod.
func asleep(ctx context.Context) error {
	for _, function := range functions {
		n, err := pods(ctx, function)
		if err == nil && n > 0 {
			err = fmt.Errorf("%s has %d pods", function, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) sleep(ctx context.Context) error {
	start := time.Now()
	if err := poll(ctx, zeroMax, "scale to zero", asleep); err != nil {
		return err
	}
	s.figures.add("from the sale made to zero", "%s", time.Since(start).Round(time.Second))
	return nil
}

func (s *shop) sleepAgain(ctx context.Context) error {
	start := time.Now()
	if err := poll(ctx, zeroMax, "scale to zero", asleep); err != nil {
		return err
	}
	s.figures.add("from the last request to zero, the bridge aside", "%s", time.Since(start).Round(time.Second))
	return nil
}

// look measures one cold start.
func (s *shop) look(ctx context.Context) error {
	for _, what := range []string{"first request at zero (item page through MySQL and Redis)", "the same again, warm"} {
		a, err := s.client.do(ctx, "item-detail", "GET /items/"+sku, "", "")
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("the item is answered %d: %s", a.status, a.body)
		}
		s.figures.add(what, "%s", a.took.Round(time.Millisecond))
	}
	return nil
}

// rush opens the sale now and lets all buyers claim at once. Nothing may be
// lost: each of them gets a clear answer, and exactly the units are won.
func (s *shop) rush(ctx context.Context) error {
	s.opens = time.Now().Add(-time.Second).Truncate(time.Second)
	if err := s.putSale(ctx); err != nil {
		return err
	}
	if n, err := pods(ctx, "seckill-http"); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("seckill-http has %d pods and not 0", n))
	}
	answers, errs := make([]answer, s.burst), make([]error, s.burst)
	start := make(chan struct{})
	var buyers sync.WaitGroup
	for i := range s.burst {
		buyers.Go(func() {
			<-start
			answers[i], errs[i] = s.client.do(ctx, "seckill-http", "POST /sales/"+s.sale+"/claims", buyer(i), `{"quantity":1}`)
		})
	}
	close(start)
	buyers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.count(answers)
}

func buyer(i int) string { return fmt.Sprintf("buyer-%d", i) }

func (s *shop) count(answers []answer) error {
	statuses, took := map[int]int{}, make([]time.Duration, len(answers))
	for i, a := range answers {
		statuses[a.status]++
		took[i] = a.took
		var claim struct{ Claim string }
		if a.status == http.StatusAccepted {
			if err := json.Unmarshal(a.body, &claim); err != nil {
				return fmt.Errorf("read the claim of %s: %w", buyer(i), err)
			}
			s.winners = append(s.winners, winner{buyer(i), claim.Claim})
		}
	}
	s.figures.add(fmt.Sprintf("%d claims at once at zero, %d units", s.burst, s.units), "%d reserved, %d sold out, %d anything else; %s",
		statuses[http.StatusAccepted], statuses[http.StatusConflict], s.burst-statuses[http.StatusAccepted]-statuses[http.StatusConflict], spread(took))
	if statuses[http.StatusAccepted] != s.units || statuses[http.StatusConflict] != s.burst-s.units {
		return fmt.Errorf("answers by status: %v", statuses)
	}
	return nil
}
