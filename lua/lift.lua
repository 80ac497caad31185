-- lift.lua ends the building of a sale: sets its stock and lifts the fence.
-- KEYS: 1-5 as in sale.lua. ARGV: 1 epoch, 2 available, 3 opened, 4 seq.
-- Reply: "open" | "superseded" (another build is at work, or this one ended) |
--   "unequal" (opened is not available + the loaded units; the fence stays).
local cur = redis.call('HMGET', KEYS[1], 'epoch', 'fence', 'held', 'closes_ms')
if cur[1] ~= ARGV[1] or cur[2] ~= 'rebuild' then return 'superseded' end
if tonumber(ARGV[2]) + tonumber(cur[3]) ~= tonumber(ARGV[3]) then return 'unequal' end
redis.call('SET', KEYS[2], ARGV[2])
local seq = tonumber(ARGV[4])
-- seq > 0 promises that the claims are there; with no order loaded there are none.
if redis.call('EXISTS', KEYS[4]) == 0 then redis.call('HSET', KEYS[4], '-', 'released|-|0|') end
redis.call('HSET', KEYS[1], 'opened', ARGV[3], 'seq', string.format('%.0f', seq), 'lift_seq', string.format('%.0f', seq), 'fence', '')
redis.call('HDEL', KEYS[1], 'fence_ms', 'fence_seq')
keep({closes_ms = tonumber(cur[4])})
return 'open'
