-- A piece of channel_heads, client_heads and bind. find_empty finds queues, or other keys, that
-- hold nothing, with one EXISTS for up to 16 of them: most are as empty as their readers expect. If
-- one of a group holds something, find_empty says nothing about the group. It takes the number of
-- keys, and a function that returns a key that is expected to be empty. each_head calls a function
-- for each of n keys, so that an error of one does not affect the others.
-- returns two functions
-- cost O(n)

local call, format = redis.call, string.format

local function find_empty(n, expected)
	local empty, group, names = {}, {}, {}
	local function check()
		if #names > 0 and call('EXISTS', unpack(names)) == 0 then
			for _, i in ipairs(group) do
				empty[i] = true
			end
		end
		group, names = {}, {}
	end
	for i = 1, n do
		local name = expected(i)
		if name then
			group[#group + 1], names[#names + 1] = i, name
			if #names == 16 then
				check()
			end
		end
	end
	check()
	return empty
end

local function each_head(n, head)
	local replies = {}
	for i = 1, n do
		local ok, reply = pcall(head, i)
		replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
	end
	return replies
end
