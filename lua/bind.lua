-- bind.lua ties an Idempotency-Key to the first request that used it.
-- KEYS: 1 the buyer's key. ARGV: 1 the request, 2 how long to remember it in ms; an
--   accepted request is then remembered for longer.
-- Reply: the request that the key belongs to.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return ARGV[1] end
return redis.call('GET', KEYS[1])
