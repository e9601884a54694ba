-- A piece of the scripts that change states: it appends the entries of a change, and writes the
-- fields. All commands that may fail for the type of a record come before the first write.
-- ARGV[4] minimum TTL of mq_m without a state, ms
-- returns (commit) the id of the last entry, the id before it, and the entry; the id is '0' if
--         nothing was appended
-- cost O(log n) for each field that has changed

local function json(text) -- text has no control characters
	return '"' .. string.gsub(text, '["\\]', '\\%0') .. '"'
end

local function put_members(out, key, map)
	if map and next(map) then
		local list = {}
		for name, value in pairs(map) do
			list[#list + 1] = '"' .. name .. '":' .. value
		end
		out[#out + 1] = '"' .. key .. '":{' .. concat(list, ',') .. '}'
	end
end

local function put_names(out, key, list)
	if list and #list > 0 then
		out[#out + 1] = '"' .. key .. '":["' .. concat(list, '","') .. '"]'
	end
end

local function encode(e)
	local out = {e.cleared and '"cleared":true'}
	put_members(out, 'gone', e.gone)
	put_names(out, 'del', e.del)
	put_members(out, 'set', e.set)
	put_members(out, 'until', e.till)
	put_members(out, 'away', e.away)
	put_names(out, 'back', e.back)
	put_members(out, 'own', e.own)
	if e.by then
		out[#out + 1] = '"by":' .. json(e.by)
	end
	if e.data then
		out[#out + 1] = '"data":' .. e.data
	end
	return '~{' .. concat(out, ',') .. '}'
end

-- Runs a command with any number of arguments. They may be pairs.
local function in_batches(command, key, list)
	for from = 1, #list, 2000 do
		call(command, key, unpack(list, from, min(from + 1999, #list)))
	end
end

-- The changes of the sorted sets. earliest is the next due time; nil if it has to be read.
local function diff()
	local d = {gone = {}, set = {}, add = {}, drop = {}, ends = {}, no_ends = {}, parts = {}, no_parts = {}}
	local earliest = due
	for i = 1, #touched do
		local name = touched[i]
		local f, was, parent = fields[name], old_end[name], old_parent[name] or ''
		local new, new_parent = f and end_of(f) or 0, f and f.parent or ''
		if f then
			d.set[#d.set + 1] = name
			if not was then
				d.add[#d.add + 1] = '0'
				d.add[#d.add + 1] = name
			end
		elseif was then
			d.gone[#d.gone + 1] = name
		end
		if new ~= (was or 0) then
			if new > 0 then
				d.ends[#d.ends + 1] = format('%d', new)
				d.ends[#d.ends + 1] = name
			else
				d.no_ends[#d.no_ends + 1] = name
			end
			if was and was > 0 and was == due then
				earliest = nil
			elseif earliest and new > 0 and (earliest == 0 or new < earliest) then
				earliest = new
			end
		end
		if parent ~= new_parent then
			if parent ~= '' then
				d.no_parts[#d.no_parts + 1] = parent .. ' ' .. name
			end
			if new_parent ~= '' then
				d.parts[#d.parts + 1] = '0'
				d.parts[#d.parts + 1] = new_parent .. ' ' .. name
			end
		end
	end
	d.earliest = earliest
	return d
end

local function check_types(d)
	if #d.add + #d.gone > 0 then
		call('ZCARD', names)
	end
	if #d.ends + #d.no_ends > 0 then
		call('ZCARD', ends)
	end
	if #d.parts + #d.no_parts > 0 and not part_count then
		call('ZCARD', parts)
	end
end

local function write_fields(d, id)
	local list = {}
	for i = 1, #d.set do
		local name = d.set[i]
		local f = fields[name]
		list[2 * i - 1] = name
		list[2 * i] = format('%s %d %d %d %s %s%s\n', f.id or id, f.lease, f.away, f.grace, f.holder,
			f.parent == '' and '~' or f.parent, f.owners) .. f.value
	end
	in_batches('HSET', records, list)
	in_batches('HDEL', records, d.gone)
	in_batches('ZADD', names, d.add)
	in_batches('ZREM', names, d.gone)
	in_batches('ZADD', ends, d.ends)
	in_batches('ZREM', ends, d.no_ends)
	in_batches('ZADD', parts, d.parts)
	in_batches('ZREM', parts, d.no_parts)
end

local function write_owners()
	local set, gone = {}, {}
	for i = 1, #touched_owners do
		local client = touched_owners[i]
		local o = owners[client]
		if o then
			local list = {format('%d %d %s', o.generation, o.ended, o.server)}
			for name in pairs(o.fields) do
				list[#list + 1] = name
			end
			set[#set + 1] = client
			set[#set + 1] = concat(list, ' ')
		else
			gone[#gone + 1] = client
		end
	end
	in_batches('HSET', clients, set)
	in_batches('HDEL', clients, gone)
end

-- If nothing is left, the state has ended: mq_m gets a TTL again, and does not expire before the
-- messages.
local function end_if_empty()
	if call('EXISTS', records, clients) > 0 then
		return
	end
	local position_ttl = tonumber(ARGV[4])
	local left = max(position_ttl + math.floor(ttl / 8), tonumber(meta[4] or 0) - ms + position_ttl - ttl)
	call('HDEL', position, 'st_keep', 'st_due', 'st_bytes')
	call('PEXPIRE', position, format('%d', left))
end

local function append_entries(texts, new_keep, earliest)
	local id, last = '0', 0
	for i = 1, #texts do
		if i > 1 then
			meta = call('HMGET', position, 'last', 'floor', 'bytes', 'until', 'st_keep')
		end
		if i < #texts or not new_keep then
			id, last = append(messages, position, meta, texts[i])
		else
			id, last = append(messages, position, meta, texts[i], 'st_keep', format('%d', new_keep),
				'st_bytes', format('%d', bytes), 'st_due', format('%d', earliest or 0))
		end
	end
	return id, last
end

-- new_keep is the end of the state, nil if it stays. forced is true for an update that was accepted:
-- it has an entry even if nothing has changed.
local function commit(new_keep, forced)
	local texts = {}
	for i = 1, #entries do
		texts[i] = encode(entries[i])
	end
	local text = encode(entry)
	if forced or text ~= '~{}' then
		texts[#texts + 1] = text
	end

	local d = diff()
	local written = #d.set > 0 or #touched_owners > 0
	if blank then
		new_keep = (keep or written) and (new_keep or -1)
	else
		check_types(d)
		new_keep = new_keep or keep
	end
	local id, last = append_entries(texts, new_keep, d.earliest)
	if blank and new_keep then
		call('UNLINK', records, names, ends, parts, keep and parts or clients)
	end
	if written or #d.gone > 0 then
		write_fields(d, id)
		write_owners()
	end
	if not keep and new_keep then
		call('PERSIST', position)
	end
	due = d.earliest
	if not due then
		due = tonumber(call('ZRANGE', ends, '0', '0', 'WITHSCORES')[2] or 0)
		call('HSET', position, 'st_due', format('%d', due))
	end
	if keep and #d.set == 0 and (blank or #d.gone > 0 or #touched_owners > 0) then
		end_if_empty()
	end
	return id, last, texts[#texts] or ''
end
