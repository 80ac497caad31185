package mysqlstore

import (
	"testing"

	"seckill/shared/testenv"
)

func TestMigrateTwiceAndAtOnce(t *testing.T) {
	t.Parallel()
	dsn := testenv.MySQL(t)
	stores := make([]*Store, 6)
	for i := range stores {
		stores[i] = openStore(t, Config{DSN: dsn, ConnsMax: 1})
	}
	together(len(stores), func(i int) {
		for range 2 {
			if err := stores[i].Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	e := newEnv(t, engines[0], dsn)
	if n := e.count(`SELECT COUNT(*) FROM schema_migrations`); n != 3 {
		t.Errorf("%d migrations are noted", n)
	}
}

func TestMigrateFinishesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(5, 1)
		e.place(claimsOf(sale, 2)...)
		e.exec(`DROP TABLE outbox`)
		e.exec(`DELETE FROM schema_migrations`)
		if err := e.Migrate(e.Context()); err != nil {
			e.Fatal(err)
		}
		e.lawsHold(sale, 3)
		e.place(claimOf(sale, "x", 1))
		e.lawsHold(sale, 2)
	})
}

// The schema refuses what must not be, whoever writes it.
func TestSchemaForbids(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(5, 1)
		c, cancelled := claimOf(sale, "a", 1), claimOf(sale, "a", 1)
		many := e.sale(5, 2)
		e.place(c, claimOf(many, "a", 2))
		if _, _, err := e.CancelUnwritten(e.Context(), cancelled); err != nil {
			e.Fatal(err)
		}
		for _, bad := range []string{
			`UPDATE stock SET available = -1 WHERE sale = '` + sale.ID + `'`,
			`UPDATE stock SET available = 6 WHERE sale = '` + sale.ID + `'`,
			`UPDATE orders SET status = 'shipped' WHERE id = '` + c.Claim + `'`,
			`UPDATE orders SET status = 'paid' WHERE id = '` + c.Claim + `'`,
			`UPDATE orders SET quantity = 2 WHERE id = '` + c.Claim + `'`,
			`UPDATE orders SET quantity = 0 WHERE id = '` + c.Claim + `'`,
			`UPDATE orders SET status = 'unpaid' WHERE id = '` + cancelled.Claim + `'`,
			`UPDATE holdings SET units = 3 WHERE sale = '` + many.ID + `'`,
			`UPDATE holdings SET units = -1 WHERE sale = '` + many.ID + `'`,
			`UPDATE sales SET closes_at = opens_at WHERE id = '` + sale.ID + `'`,
			`UPDATE sales SET ticket = 'gold' WHERE id = '` + sale.ID + `'`,
		} {
			if _, err := e.db.ExecContext(e.Context(), bad); err == nil {
				e.Errorf("allowed: %s", bad)
			}
		}
		e.lawsHold(sale, 4)
		e.lawsHold(many, 3)
	})
}
