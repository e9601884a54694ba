#!lua
-- Claims entries that are due: for a time nobody else finds them so. The score that tells of it is the fence of
-- the claim: no other claim and no appointment ends on half of a millisecond at that time.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_watch_{evN}
-- ARGV[1] most entries
-- ARGV[2] how long the claim lasts, ms
-- returns {entry, token, record of a watched message or '', …}
-- cost O(claimed × log entries)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local due = call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', ms), 'LIMIT', '0', ARGV[1])
local token = string.format('%d.5', ms + tonumber(ARGV[2]))
local claims = {}
for _, entry in ipairs(due) do
	call('ZADD', KEYS[1], token, entry)
	claims[#claims + 1] = entry
	claims[#claims + 1] = token
	claims[#claims + 1] = string.sub(entry, 1, 2) == 'd:' and call('HGET', KEYS[2], entry) or ''
end
return claims
