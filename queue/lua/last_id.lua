-- A piece of other scripts: last_id returns the last id of a channel. messages is mq_ch_{channel},
-- and last is the member last of mq_m_{channel}, or false. A backend may have written messages with
-- higher ids. To read the newest message would copy all of it, and it may have a megabyte: so the
-- messages above last are counted first.
-- returns a function
-- cost O(log n)

local call, format = redis.call, string.format

local function last_id(messages, last)
	if last and call('ZCOUNT', messages, '(' .. last, '9007199254740991') == 0 then
		return last
	end
	local newest = call('ZREVRANGE', messages, '0', '0', 'WITHSCORES')[2]
	if not newest or newest == last then
		return last or '0'
	end
	if tonumber(newest) > 9007199254740991 then -- not an id
		newest = call('ZRANGE', messages, '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
	end
	return format('%d', math.max(tonumber(last or 0), math.floor(tonumber(newest or 0))))
end
