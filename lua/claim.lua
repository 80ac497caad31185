-- claim.lua decides a batch of claims of one sale, in order. It checks
-- everything first and writes last; running it twice with the same claim ids
-- changes nothing more.
-- KEYS: 1-5 as in sale.lua, then one rate key for each claim.
-- ARGV: 1 gap in ms between two attempts of a buyer; then for each claim: id, buyer, units,
--   ticket: "kind epoch until_ms" of a genuine one, "" for none.
-- Reply: first a head, then one answer for each claim.
--   head: "ok epoch seq now_ms price_minor currency sku pay_window_ms limit stock", or one
--   of "not_loaded", "fenced", "corrupt", which then is the answer to all.
--   answers: "reserved seq" | "again claim record" | "held claim record" | "key_reused" |
--   "limit_reached" | "not_open opens_ms" | "closed" | "paused" |
--   "ticket_required" | "ticket_expired" | "rate retry_ms" | "sold_out"
local s = read_sale()
if not s then return {'not_loaded'} end
if s.corrupt then return {'corrupt'} end
if s.fence ~= '' then return {'fenced'} end
local f = string.format
local sale = redis.call('HMGET', KEYS[1], 'price_minor', 'currency', 'sku', 'pay_window_ms', 'limit', 'opens_ms', 'paused', 'ticket')
local gap, limit, opens, now = tonumber(ARGV[1]), tonumber(sale[5]), tonumber(sale[6]), now_ms()
local n = (#ARGV - 1) / 4
local ids, buyers, rates = {}, {}, {}
for i = 1, n do
  ids[i], buyers[i], rates[i] = ARGV[4 * i - 2], ARGV[4 * i - 1], KEYS[5 + i]
end
local records, holds, waits = {}, {}, {}
local r, h, w = redis.call('HMGET', KEYS[4], unpack(ids)), redis.call('HMGET', KEYS[3], unpack(buyers)), redis.call('MGET', unpack(rates))
for i = 1, n do
  records[ids[i]], holds[buyers[i]], waits[rates[i]] = r[i], h[i] or '', tonumber(w[i] or nil)
end

local function held_by(buyer)
  local units, last = 0, nil
  for claim, u in string.gmatch(holds[buyer], '([^=,]+)=(%d+)') do units, last = units + u, claim end
  return units, last
end

-- Why a ticket does not let a claim in; nil if it does.
local function barred(ticket)
  if (sale[8] or '') == '' then return nil end
  local kind, epoch, until_ms = string.match(ticket, '^(%a+) (%d+) (%d+)$')
  if not kind then return 'ticket_required' end
  if kind ~= sale[8] or epoch ~= s.epoch or tonumber(until_ms) <= now then return 'ticket_expired' end
end

local reply, accepted, attempted, written = {''}, {}, {}, {}
local function decide(id, buyer, units_text, ticket, rate)
  local units = tonumber(units_text)
  local record = records[id]
  if record then
    local owner, u = string.match(record, '^%a+|([^|]*)|(%d+)')
    if owner ~= buyer or tonumber(u) ~= units then return 'key_reused' end
    return 'again ' .. id .. ' ' .. record
  end
  local held, last = held_by(buyer)
  if held >= limit then
    return 'held ' .. last .. ' ' .. (written[last] or redis.call('HGET', KEYS[4], last) or ('ordered|' .. buyer .. '|' .. f('%.0f', held) .. '|0'))
  end
  if held + units > limit then return 'limit_reached' end
  if now < opens then return 'not_open ' .. sale[6] end
  if now >= s.closes_ms then return 'closed' end
  if sale[7] == '1' then return 'paused' end
  local why = barred(ticket)
  if why then return why end
  local wait = waits[rate]
  if wait and wait > now then return 'rate ' .. f('%.0f', math.min(wait - now, gap)) end
  -- Whoever is at his limit now has no further attempt to be held back from.
  waits[rate] = now + gap
  if s.stock < units or held + units < limit then attempted[#attempted + 1] = rate end
  if s.stock < units then return 'sold_out' end
  s.stock, s.held, s.reserved, s.seq = s.stock - units, s.held + units, s.reserved + units, s.seq + 1
  holds[buyer] = add_held(holds[buyer], id, units_text)
  records[id] = 'reserved|' .. buyer .. '|' .. units_text .. '|'
  written[id] = records[id]
  local seq = f('%.0f', s.seq)
  accepted[#accepted + 1] = {id = id, buyer = buyer, units = units_text, seq = seq}
  return 'reserved ' .. seq
end
for i = 1, n do reply[i + 1] = decide(ids[i], buyers[i], ARGV[4 * i], ARGV[4 * i + 1], rates[i]) end
local now_text = f('%.0f', now)
reply[1] = table.concat({'ok', s.epoch, f('%.0f', s.seq), now_text, sale[1], sale[2], sale[3], sale[4], sale[5], f('%.0f', s.stock)}, ' ')

-- The log entry comes first: if Redis refuses to write (memory limit, failed
-- snapshot, replica), it refuses here, before anything has changed.
local claim_fields, buyer_fields = {}, {}
local terms = '|' .. table.concat({sale[3], sale[1], sale[2], sale[4], sale[5], s.epoch}, '|') .. '|'
for i, c in ipairs(accepted) do
  local at = redis.call('XADD', KEYS[5], '*', 'claim', c.id .. '|' .. c.buyer .. '|' .. c.units .. terms .. c.seq .. '|' .. now_text)
  claim_fields[2 * i - 1], claim_fields[2 * i] = c.id, records[c.id] .. at
  buyer_fields[2 * i - 1], buyer_fields[2 * i] = c.buyer, holds[c.buyer]
end
if #accepted > 0 then
  redis.call('HSET', KEYS[4], unpack(claim_fields))
  redis.call('HSET', KEYS[3], unpack(buyer_fields))
  write_sale(s)
  if s.held_was == '0' or s.seq_was == '0' or s.reserved_was == '0' then keep(s) end
end
for _, rate in ipairs(attempted) do redis.call('SET', rate, f('%.0f', waits[rate]), 'PX', gap) end
return reply
