package mysqlstore

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	const good = "u:secret@tcp(db:3306)/seckill"
	cases := []struct {
		cfg  Config
		want string
	}{
		{Config{DSN: good, ConnsMax: 8}, ""},
		{Config{ConnsMax: 8}, "MYSQL_DSN must be set"},
		{Config{DSN: "u:secret@tcp(db:3306)", ConnsMax: 8}, "MYSQL_DSN: "},
		{Config{DSN: "u:secret@tcp(db:3306)/", ConnsMax: 8}, "names no database"},
		{Config{DSN: good, ConnsMax: 0}, "MYSQL_CONNS_MAX must be"},
		{Config{DSN: good, ConnsMax: 1001}, "MYSQL_CONNS_MAX must be"},
	}
	for _, c := range cases {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the password is told: %v", err)
		}
	}
}

// Whoever wrote the DSN, what decides over correctness is set here.
func TestDSNCannotChangeTheMeaning(t *testing.T) {
	t.Parallel()
	cfg, err := fixDSN("u@tcp(db)/x?clientFoundRows=true&parseTime=false&loc=America%2FNew_York&time_zone=%27-05%3A00%27" +
		"&sql_mode=%27%27&multiStatements=true&interpolateParams=false&rejectReadOnly=false&readTimeout=0&charset=latin1" +
		"&allowAllFiles=true&tls=skip-verify")
	if err != nil {
		t.Fatal(err)
	}
	dsn := cfg.FormatDSN()
	for _, want := range []string{"parseTime=true", "rejectReadOnly=true", "readTimeout=10s", "collation=utf8mb4_bin", "charset=utf8mb4", "tls=skip-verify", "interpolateParams=true"} {
		if !strings.Contains(dsn, want) {
			t.Errorf("%s is not in %s", want, dsn)
		}
	}
	for _, no := range []string{"clientFoundRows", "multiStatements", "latin1", "allowAllFiles", "loc=", "-05"} {
		if strings.Contains(dsn, no) {
			t.Errorf("%s is in %s", no, dsn)
		}
	}
}

// The whole life of an order, through a DSN that asks for everything that
// breaks others: rows found instead of changed, local time, another charset.
func TestOddDSNChangesNothing(t *testing.T) {
	t.Parallel()
	cfg, err := mysql.ParseDSN(testenv.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.ClientFoundRows, cfg.ParseTime, cfg.Loc = true, false, time.FixedZone("X", 3*3600)
	cfg.Params = map[string]string{"time_zone": "'-05:00'", "sql_mode": "''"}
	odd, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loc = odd
	e := newEnv(t, engines[0], cfg.FormatDSN())
	sale := e.sale(5, 1)
	c, paid := claimOf(sale, "a", 1), claimOf(sale, "b", 1)
	before := time.Now()
	placed := e.place(c, paid)
	if drift := placed[0].Order.CreatedAt.Sub(before); drift < -time.Minute || drift > time.Minute {
		t.Errorf("created at %s, it is %s", placed[0].Order.CreatedAt, before)
	}
	for i := range 2 {
		if _, row, err := e.Cancel(t.Context(), c.Claim, "a"); err != nil || (row.ID != 0) != (i == 0) {
			t.Errorf("cancel %d: %+v, %v", i, row, err)
		}
	}
	e.pays(paymentOf(paid, "r"), seckill.PayApplied, seckill.OrderPaid)
	e.pays(paymentOf(paid, "r"), seckill.PayDuplicate, seckill.OrderPaid)
	if _, n, err := e.ExpireDue(t.Context(), 10); err != nil || n != 0 {
		t.Errorf("expired %d, %v", n, err)
	}
	if n := e.count(`SELECT COUNT(*) FROM orders WHERE ABS(TIMESTAMPDIFF(SECOND, created_at, updated_at)) > 60`); n != 0 {
		t.Errorf("%d orders with instants of two time zones", n)
	}
	e.lawsHold(sale, 4)
}

// Statements that the server prepares answer as those that the client fills in.
func TestPreparedStatementsAnswerTheSame(t *testing.T) {
	t.Parallel()
	cfg, err := fixDSN(testenv.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams = false
	connector, err := newConnector(cfg, lockWaitMax)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{db: sql.OpenDB(connector), connector: connector}
	defer s.Close() //nolint:errcheck // nothing to lose
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := env{T: t, Store: s, engine: engines[0]}
	sale := e.sale(100, 3)
	claims := claimsOf(sale, 50)
	claims[7].Buyer = strings.Repeat("x", 300)
	if got := outcomes(e.place(claims...)); got[7] != "poison" || got[8] != "unpaid" {
		t.Errorf("placed %v", got)
	}
	stored := e.status(claims[0].Claim, seckill.OrderUnpaid)
	if again := e.place(claims[0])[0]; again.New || again.Order != stored {
		t.Errorf("placed again: %+v, stored %+v", again, stored)
	}
	e.pays(paymentOf(claims[0], "r"), seckill.PayApplied, seckill.OrderPaid)
	if _, row, err := e.Cancel(t.Context(), claims[1].Claim, claims[1].Buyer); err != nil || row.ID == 0 {
		t.Errorf("cancelled %+v, %v", row, err)
	}
	e.makeDueUnpaid(sale)
	if _, n, err := e.ExpireDue(t.Context(), 100); err != nil || n != 47 {
		t.Errorf("expired %d, %v", n, err)
	}
	if back := e.returned(); back != 48 {
		t.Errorf("%d claims return their units", back)
	}
	e.lawsHold(sale, 99)
}

func TestOrderTellsMySQLsNow(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(5, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		o, at, err := e.Order(e.Context(), c.Claim)
		if err != nil || at.Before(o.CreatedAt) || o.At(at).Status != seckill.OrderUnpaid {
			e.Errorf("%+v at %s, %v", o, at, err)
		}
		e.makeDue(sale)
		if o, at, err = e.Order(e.Context(), c.Claim); err != nil || o.At(at).Status != seckill.OrderExpired {
			e.Errorf("due: %+v at %s, %v", o, at, err)
		}
		if _, _, err := e.Order(e.Context(), strings.ToUpper(c.Claim)); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("in upper case: %v", err)
		}
	})
}

func TestPing(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		if err := e.Ping(e.Context()); err != nil {
			e.Error(err)
		}
	})
	away := openStore(t, Config{DSN: "nobody@tcp(127.0.0.1:1)/nowhere", ConnsMax: 1})
	if err := away.Ping(t.Context()); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("nobody there: %v", err)
	}
}
