#!lua
-- Claims due entries: sets their scores to the end of the claim, so that no other call finds them
-- due before. The score is also the fencing token. It ends in ".5", so it never equals the score of
-- a scheduled check, which is an integer.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_watch_{evN}
-- KEYS[3] ev_fields_{evN}
-- ARGV[1] largest number of entries
-- ARGV[2] duration of the claim, ms
-- returns {entry, token, record of a message with a deadline or of a tracked channel or '', …}
-- cost O(claimed × log entries)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local due = call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', ms), 'LIMIT', '0', ARGV[1])
local token = string.format('%d.5', ms + tonumber(ARGV[2]))
local records = {['d:'] = KEYS[2], ['f:'] = KEYS[3]}
local claims = {}
for _, entry in ipairs(due) do
	call('ZADD', KEYS[1], token, entry)
	claims[#claims + 1] = entry
	claims[#claims + 1] = token
	local key = records[string.sub(entry, 1, 2)]
	claims[#claims + 1] = key and call('HGET', key, entry) or ''
end
return claims
