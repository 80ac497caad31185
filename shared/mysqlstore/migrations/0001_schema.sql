-- The binary collation compares byte by byte (buyer Alice is not alice);
-- instants are UTC with milliseconds; units are signed, so that taking too many
-- is refused by a guard or a CHECK and never wraps around or underflows. Each
-- statement can run again after a crash half-way: DDL commits by itself.

CREATE TABLE IF NOT EXISTS items (
    sku         VARCHAR(64) NOT NULL,
    name        VARCHAR(255) NOT NULL,
    description TEXT NOT NULL,
    image_url   VARCHAR(2048) NOT NULL,
    version     BIGINT NOT NULL,
    updated_at  DATETIME(3) NOT NULL,
    PRIMARY KEY (sku)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS sales (
    id            VARCHAR(64) NOT NULL,
    sku           VARCHAR(64) NOT NULL,
    price_minor   BIGINT NOT NULL,
    currency      VARCHAR(3) NOT NULL,
    units         BIGINT NOT NULL,
    buyer_limit   BIGINT NOT NULL,
    opens_at      DATETIME(3) NOT NULL,
    closes_at     DATETIME(3) NOT NULL,
    pay_window_ms BIGINT NOT NULL,
    paused        TINYINT NOT NULL,
    epoch         BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    created_at    DATETIME(3) NOT NULL,
    updated_at    DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    KEY sales_sku (sku, opens_at),
    KEY sales_closes (closes_at),
    CONSTRAINT sales_price CHECK (price_minor >= 1),
    CONSTRAINT sales_units CHECK (units >= 1),
    CONSTRAINT sales_limit CHECK (buyer_limit >= 1),
    CONSTRAINT sales_window CHECK (closes_at > opens_at),
    CONSTRAINT sales_pay_window CHECK (pay_window_ms >= 1),
    CONSTRAINT sales_epoch CHECK (epoch >= 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS stock (
    sale      VARCHAR(64) NOT NULL,
    opened    BIGINT NOT NULL,
    available BIGINT NOT NULL,
    seq       BIGINT NOT NULL,
    epoch     BIGINT NOT NULL DEFAULT 0,
    placed    BIGINT NOT NULL DEFAULT 0,
    version   BIGINT NOT NULL,
    PRIMARY KEY (sale),
    CONSTRAINT stock_available CHECK (available >= 0 AND available <= opened)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- No foreign key to sales: a claim of a sale nobody knows becomes a visible
-- rejected order. live_key is NULL unless the order is live in a sale with
-- limit 1, so the unique key holds that limit; holdings hold the others.
CREATE TABLE IF NOT EXISTS orders (
    id           VARCHAR(36) NOT NULL,
    sale         VARCHAR(64) NOT NULL,
    sku          VARCHAR(64) NOT NULL,
    buyer        VARCHAR(64) NOT NULL,
    quantity     BIGINT NOT NULL,
    buyer_limit  BIGINT NOT NULL,
    price_minor  BIGINT NOT NULL,
    amount_minor BIGINT GENERATED ALWAYS AS (price_minor * quantity) STORED,
    currency     VARCHAR(3) NOT NULL,
    status       VARCHAR(16) NOT NULL DEFAULT 'unpaid',
    reason       VARCHAR(32) NOT NULL DEFAULT '',
    seq          BIGINT NOT NULL,
    accepted_at  DATETIME(3) NOT NULL,
    created_at   DATETIME(3) NOT NULL,
    pay_by       DATETIME(3) NOT NULL,
    paid_at      DATETIME(3) NULL,
    updated_at   DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    live_key     TINYINT GENERATED ALWAYS AS
        (CASE WHEN buyer_limit = 1 AND status IN ('unpaid', 'paid') THEN 1 END) STORED,
    PRIMARY KEY (id),
    UNIQUE KEY orders_live (sale, buyer, live_key),
    KEY orders_due (status, pay_by),
    KEY orders_sale (sale, status),
    CONSTRAINT orders_status CHECK (status IN
        ('unpaid', 'paid', 'cancelled', 'expired', 'refunding', 'refunded', 'rejected')),
    CONSTRAINT orders_quantity CHECK (quantity >= 1 AND (quantity <= buyer_limit OR status NOT IN ('unpaid', 'paid'))),
    CONSTRAINT orders_price CHECK (price_minor >= 1),
    CONSTRAINT orders_paid CHECK (status <> 'paid' OR paid_at IS NOT NULL)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Live units of one buyer in a sale with a limit above 1.
CREATE TABLE IF NOT EXISTS holdings (
    sale        VARCHAR(64) NOT NULL,
    buyer       VARCHAR(64) NOT NULL,
    units       BIGINT NOT NULL,
    buyer_limit BIGINT NOT NULL,
    PRIMARY KEY (sale, buyer),
    CONSTRAINT holdings_units CHECK (units >= 0 AND units <= buyer_limit)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Every verified callback, applied or not. money is NULL unless the payment
-- brought money, so the same payment under two callback ids counts once; an
-- order is paid by one payment only.
CREATE TABLE IF NOT EXISTS payments (
    id            BIGINT NOT NULL AUTO_INCREMENT,
    callback      VARCHAR(255) NOT NULL,
    order_id      VARCHAR(36) NOT NULL,
    provider      VARCHAR(64) NOT NULL,
    reference     VARCHAR(255) NOT NULL,
    amount_minor  BIGINT NOT NULL,
    currency      VARCHAR(16) NOT NULL,
    result        VARCHAR(16) NOT NULL,
    received_at   DATETIME(3) NOT NULL,
    money         TINYINT GENERATED ALWAYS AS
        (CASE WHEN result IN ('applied', 'refund_due') THEN 1 END) STORED,
    applied_order VARCHAR(36) GENERATED ALWAYS AS
        (CASE WHEN result = 'applied' THEN order_id END) STORED,
    PRIMARY KEY (id),
    UNIQUE KEY payments_callback (provider, callback),
    UNIQUE KEY payments_money (provider, reference, money),
    UNIQUE KEY payments_applied (applied_order),
    KEY payments_order (order_id),
    CONSTRAINT payments_result CHECK (result IN ('applied', 'duplicate', 'refund_due', 'mismatch'))
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What committed transactions left to do, by the ids of their orders: returns
-- is a JSON list of those whose units go back in Redis, announce a JSON object
-- from a state to those that entered it. All else is in orders.
CREATE TABLE IF NOT EXISTS outbox (
    id         BIGINT NOT NULL AUTO_INCREMENT,
    sale       VARCHAR(64) NOT NULL,
    returns    MEDIUMTEXT NOT NULL,
    announce   MEDIUMTEXT NOT NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    KEY outbox_sale (sale)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
