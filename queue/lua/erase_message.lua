#!lua flags=allow-oom
-- Erases one message in each of many channels: replaces it by what stays of it, and appends an
-- entry that reports it with append.lua. Then reads the servers with subscribers.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+3] ch_{channel}
-- KEYS[k+4] mq_k_{channel}:<key>, the key of this erasure
-- ARGV[a+1] the message as it was read, <id>:<data>; nothing if it is not held, or erased already
-- ARGV[a+2] what replaces it, <id>:<data>, or nothing
-- ARGV[a+3] the entry to append, or nothing if the message is erased already
-- For all, in addition to append.lua:
-- ARGV[5] TTL of the keys, ms
-- ARGV[7] 1 if the callers wait for replicas
-- returns for each channel, separated by newlines: id of the entry, 0 if it is not known; id before
--         it; 0 if it was appended, 1 if the message was erased before, 2 if the message is not as
--         it was read, and nothing was changed; the clock (Unix ms), the servers; or an error
-- cost O(log n), O(servers)

local function erase_message(i)
	local k, a = (i - 1) * 4, 4 + 3 * i
	local messages, position, key = KEYS[k+1], KEYS[k+2], KEYS[k+4]
	local old, entry = ARGV[a+1], ARGV[a+3]
	local known = old == '' and call('GET', key)
	if known or entry == '' then
		if known and ARGV[7] == '1' then
			-- A WAIT covers only writes on its own connection.
			call('SET', key, known, 'KEEPTTL')
		end
		return format('%s\n0\n1\n%d\n%s', known or '0', ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
	end
	local score = old ~= '' and call('ZSCORE', messages, old)
	if old ~= '' and not score then
		return format('0\n0\n2\n%d\n', ms)
	end
	local meta = call('HMGET', position, 'last', 'floor', 'bytes', 'until', 'st_keep')
	if score then
		call('ZREM', messages, old)
		call('ZADD', messages, score, ARGV[a+2])
		meta[3] = tonumber(meta[3] or 0) + #ARGV[a+2] - #old
	end
	local id, last = append(messages, position, meta, entry)
	call('SET', key, id, 'PX', ARGV[5])
	return format('%s\n%d\n0\n%d\n%s', id, last, ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, (#ARGV - 7) / 3 do
	local ok, reply = pcall(erase_message, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
