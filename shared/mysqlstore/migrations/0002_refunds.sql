-- Money that goes back. Every payment that brought money and does not pay for
-- a live order has one row here, written in the transaction that made it so;
-- the key lets no payment be given back twice. Rows end as done.
CREATE TABLE IF NOT EXISTS refunds (
    id           BIGINT NOT NULL AUTO_INCREMENT,
    sale         VARCHAR(64) NOT NULL,
    order_id     VARCHAR(36) NOT NULL,
    provider     VARCHAR(64) NOT NULL,
    reference    VARCHAR(255) NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency     VARCHAR(3) NOT NULL,
    cause        VARCHAR(16) NOT NULL,
    status       VARCHAR(16) NOT NULL DEFAULT 'due',
    tries        BIGINT NOT NULL DEFAULT 0,
    due_at       DATETIME(3) NOT NULL,
    created_at   DATETIME(3) NOT NULL,
    done_at      DATETIME(3) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY refunds_payment (provider, reference),
    KEY refunds_due (status, due_at),
    KEY refunds_order (order_id),
    KEY refunds_sale (sale),
    CONSTRAINT refunds_amount CHECK (amount_minor >= 1),
    CONSTRAINT refunds_cause CHECK (cause IN ('cancelled', 'late', 'twice')),
    CONSTRAINT refunds_status CHECK (status IN ('due', 'done')),
    CONSTRAINT refunds_done CHECK (status <> 'done' OR done_at IS NOT NULL)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Late money was only recorded before.
INSERT INTO refunds (sale, order_id, provider, reference, amount_minor, currency, cause, due_at, created_at)
SELECT o.sale, o.id, p.provider, p.reference, p.amount_minor, p.currency,
    CASE WHEN o.status = 'paid' THEN 'twice' ELSE 'late' END, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)
FROM payments AS p JOIN orders AS o ON o.id = p.order_id
WHERE p.result = 'refund_due' AND NOT EXISTS (
    SELECT 1 FROM refunds AS r WHERE r.provider = p.provider AND r.reference = p.reference);
