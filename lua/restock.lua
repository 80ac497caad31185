-- restock.lua gives the units of a batch of claims of one sale back, each
-- exactly once.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: for each claim: id, buyer, units.
-- Reply: for each claim "done" (its units are in stock again) | "same" (they were
--   before) | "adopted" (Redis did not know the claim; stock is untouched, and a
--   settle that comes later finds it released) | "gone" (Redis does not hold the sale; if
--   it is built again, then without these units held) | "fenced" (ask again later).
local s, reply, ids = read_sale(), {}, {}
for i = 1, #ARGV / 3 do
  ids[i], reply[i] = ARGV[3 * i - 2], s and 'fenced' or 'gone'
end
if not s or s.fence == 'rebuild' then return reply end
local b = read_claims(ids)
for i, id in ipairs(ids) do
  reply[i] = settle_one(s, b, id, ARGV[3 * i - 1], tonumber(ARGV[3 * i]), 'released', '')
end
write_claims(b)
if s.stock then write_sale(s) end
return reply
