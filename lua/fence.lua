-- fence.lua stops claims of a sale until it is built anew, and notes how far
-- the claims in flight reach.
-- KEYS: 1-5 as in sale.lua. ARGV: 1 last sequence of the stream of claims, or "" if it
--   is not known yet.
-- Reply: "fenced" (now, or how far was noted now) | "same" (nothing changed).
if redis.call('TYPE', KEYS[1])['ok'] ~= 'hash' then redis.call('DEL', KEYS[1]) end
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'fence', 'fence_seq')
if fence[2] and fence[2] ~= '' and (fence[3] or ARGV[1] == '') then return 'same' end
if not fence[1] then
  redis.call('HSET', KEYS[1], 'epoch', '0', 'opened', '0', 'held', '0', 'reserved', '0', 'debt', '0', 'seq', '0', 'closes_ms', string.format('%.0f', now_ms()))
  redis.call('PEXPIRE', KEYS[1], 3600000)
end
set_fence({}, 'drain')
if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], 'fence_seq', ARGV[1]) end
return 'fenced'
