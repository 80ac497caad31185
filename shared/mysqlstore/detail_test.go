package mysqlstore

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestItemWithSalesReadsBothAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		ctx, sku := context.Background(), testenv.Name(e)
		if _, _, err := e.ItemWithSales(ctx, sku, 9); !errors.Is(err, seckill.ErrNotFound) {
			e.Fatalf("no item: %v", err)
		}
		item, err := e.PutItem(ctx, seckill.Item{SKU: sku, Name: "Name", Description: "Text", ImageURL: "/i.png"})
		if err != nil {
			e.Fatal(err)
		}
		got, sales, err := e.ItemWithSales(ctx, sku, 9)
		if err != nil || got != item || len(sales) != 0 {
			e.Fatalf("without sales: %+v, %v, %v; want %+v", got, sales, err, item)
		}
		var want []seckill.Sale
		for day := range 4 {
			sale := e.sale(10, 2)
			sale.SKU = sku
			sale.ID = testenv.Name(e)
			sale.OpensAt = sale.OpensAt.Add(time.Duration(day) * 24 * time.Hour)
			sale.ClosesAt = sale.OpensAt.Add(time.Hour)
			sale.Paused = day == 3
			sale.Ticket = []seckill.TicketKind{seckill.TicketNone, seckill.TicketSigned, seckill.TicketWork, seckill.TicketNone}[day]
			if sale, err = e.PutSale(ctx, sale); err != nil {
				e.Fatal(err)
			}
			want = append(want, sale)
		}
		if got, sales, err = e.ItemWithSales(ctx, sku, 3); err != nil || got != item || !reflect.DeepEqual(sales, want[1:]) {
			e.Errorf("the newest sales: %+v, %+v, %v; want %+v", got, sales, err, want[1:])
		}
	})
}
