-- fence.lua stops claims of a sale until it is built anew. It does so only for
-- the epoch that its caller has judged: another one has been built meanwhile.
-- KEYS: 1-5 as in sale.lua. ARGV: 1 the epoch, "0" if Redis did not hold the sale.
-- Reply: "fenced" | "same" (it was before) | "superseded" (another epoch is there).
if redis.call('TYPE', KEYS[1])['ok'] ~= 'hash' then redis.call('DEL', KEYS[1]) end
local cur = redis.call('HMGET', KEYS[1], 'epoch', 'fence')
if (cur[1] or '0') ~= ARGV[1] then return 'superseded' end
if cur[2] and cur[2] ~= '' then return 'same' end
if not cur[1] then
  redis.call('HSET', KEYS[1], 'epoch', '0', 'opened', '0', 'held', '0', 'reserved', '0', 'debt', '0', 'seq', '0', 'closes_ms', string.format('%.0f', now_ms()))
  redis.call('PEXPIRE', KEYS[1], 3600000)
end
set_fence({}, 'drain')
return 'fenced'
