-- A piece of the scripts that change states: it appends the entries of a change, and writes the
-- fields. All commands that may fail for the type of a record come before the first write.
-- ARGV[4] minimum TTL of mq_m without a state, ms
-- returns (commit) the id of the last entry, the id before it, the entry, when the next field ends,
--         or the whole state, or 0, and when the whole state ends, -1 for never, 0 without fields;
--         the id is '0' if nothing was appended
-- cost O(log n) for each field that has changed

-- Returns text and one more member of an entry, as JSON. text is nil or false for the first member.
local function add_members(text, key, map)
	local name, value = next(map)
	if not name then
		return text
	end
	text = (text and text .. ',"' or '"') .. key .. '":{"' .. name .. '":' .. value
	if not next(map, name) then -- mostly
		return text .. '}'
	end
	local list = {text}
	for other, value_of_other in next, map, name do
		list[#list + 1] = '"' .. other .. '":' .. value_of_other
	end
	return table.concat(list, ',') .. '}'
end

local function add_names(text, key, list)
	if not list or #list == 0 then
		return text
	end
	return (text and text .. ',"' or '"') .. key .. '":["' .. table.concat(list, '","') .. '"]'
end

-- Returns an entry as JSON.
local function encode(e)
	local text = e.cleared and '"cleared":true'
	if e.gone then
		text = add_members(text, 'gone', e.gone)
	end
	if e.del then
		text = add_names(text, 'del', e.del)
	end
	if e.set then
		text = add_members(text, 'set', e.set)
	end
	if e.till then
		text = add_members(text, 'until', e.till)
	end
	if e.away then
		text = add_members(text, 'away', e.away)
	end
	if e.back then
		text = add_names(text, 'back', e.back)
	end
	if e.own then
		text = add_members(text, 'own', e.own)
	end
	if e.by then
		text = (text and text .. ',' or '') .. '"by":' .. e.by
	end
	if e.from then
		text = (text and text .. ',' or '') .. '"from":' .. e.from
	end
	if e.exclude then
		text = (text and text .. ',' or '') .. '"exclude":' .. e.exclude
	end
	if e.data then
		text = (text and text .. ',' or '') .. '"data":' .. e.data
	end
	return '~{' .. (text or '') .. '}'
end

-- Returns the functions for changes of more than values.
local function define_writer()
	local d -- the changes of the records: lists of arguments, nil if they are empty
	local writer = {}

	local function plan_write(list, score, member)
		local words = d[list] or {}
		d[list] = words
		words[#words + 1] = score or member
		if score then
			words[#words + 1] = member
		end
	end

	-- Plans the writes of names, ends and parts. Returns the next due time, nil if it has to be read,
	-- and whether the state may be empty then.
	function writer.plan()
		local earliest, touched, fields = c.due, c.touched, c.fields
		local old_end, old_parent = c.old_end, c.old_parent or {}
		d = {}
		for i = 1, #touched do
			local name = touched[i]
			local f, was, parent = fields[name], old_end[name], old_parent[name] or ''
			local till, new_parent = f and end_of(f) or 0, f and f.parent or ''
			if f and not was then
				plan_write('add', '0', name)
			elseif not f and was then
				plan_write('gone', nil, name)
			end
			if till ~= (was or 0) then
				if till > 0 then
					plan_write('ends', format('%d', till), name)
				else
					plan_write('no_ends', nil, name)
				end
				if was and was > 0 and was == c.due then
					earliest = nil
				elseif earliest and till > 0 and (earliest == 0 or till < earliest) then
					earliest = till
				end
			end
			if parent ~= new_parent then
				if parent ~= '' then
					plan_write('no_parts', nil, parent .. ' ' .. name)
				end
				if new_parent ~= '' then
					plan_write('parts', '0', new_parent .. ' ' .. name)
				end
			end
		end
		return earliest, c.blank or d.gone
	end

	-- Checks the types of the records that will be written. Returns the new end of the state.
	function writer.check(new_keep)
		if c.blank then
			return (c.keep or d.add or c.touched_owners) and (new_keep or -1)
		end
		if d.add or d.gone then
			call('ZCARD', c.names)
		end
		if d.ends or d.no_ends then
			call('ZCARD', c.ends)
		end
		if (d.parts or d.no_parts) and not c.part_count then
			call('ZCARD', c.parts)
		end
		return new_keep or c.keep
	end

	-- Writes records, and what is planned.
	function writer.write(list, new_keep)
		if c.blank and new_keep then
			call('UNLINK', c.records, c.names, c.ends, c.parts, c.keep and c.parts or c.clients)
		end
		in_batches('HSET', c.records, list)
		in_batches('HDEL', c.records, d.gone)
		in_batches('ZADD', c.names, d.add)
		in_batches('ZREM', c.names, d.gone)
		in_batches('ZADD', c.ends, d.ends)
		in_batches('ZREM', c.ends, d.no_ends)
		in_batches('ZADD', c.parts, d.parts)
		in_batches('ZREM', c.parts, d.no_parts)
	end

	-- Appends the entries of a change, except the last one. Returns what mq_m holds then.
	function writer.append_first()
		local meta = c.meta
		for i = 1, #c.entries do
			append(c.messages, c.position, meta, encode(c.entries[i]))
			meta = call('HMGET', c.position, 'last', 'floor', 'bytes', 'until', 'st_keep')
		end
		return meta
	end

	function writer.read_due()
		local due = tonumber(call('ZRANGE', c.ends, '0', '0', 'WITHSCORES')[2] or 0)
		call('HSET', c.position, 'st_due', format('%d', due))
		return due
	end

	-- Ends the state if it holds nothing. mq_m gets a TTL again, and does not expire before the
	-- messages.
	function writer.end_state(last_until)
		if call('EXISTS', c.records, c.clients) == 0 then
			local ttl_of_position = tonumber(ARGV[4])
			local after_messages = tonumber(last_until or 0) - ms + ttl_of_position - ttl
			local left = max(ttl_of_position + math.floor(ttl / 8), after_messages)
			call('HDEL', c.position, 'st_keep', 'st_due', 'st_bytes')
			call('PEXPIRE', c.position, format('%d', left))
		end
	end

	return writer
end

local function record_of(f, id)
	if f.lease == 0 and f.away == 0 and f.grace == 0 and f.parent == '' then
		return (f.id or id) .. ' 0 0 0 ' .. f.holder .. ' ~' .. f.owners .. '\n' .. value_of(f)
	end
	return format('%s %d %d %d %s %s%s\n', f.id or id, f.lease, f.away, f.grace, f.holder,
		f.parent == '' and '~' or f.parent, f.owners) .. value_of(f)
end

-- new_keep is the end of the state, nil if it stays. forced is true for an update that was
-- accepted: it has an entry even if nothing has changed.
local function commit(new_keep, forced)
	local text, meta, keep, due, touched, removed = encode(c.entry), c.meta, c.keep, c.due, c.touched, c.blank
	if c.entries and text == '~{}' and not forced then
		text = encode(table.remove(c.entries))
	end
	local writer = (removed or c.indexed or #touched > 1000) and define_writer()
	if writer then
		due, removed = writer.plan()
		new_keep = writer.check(new_keep)
	end
	new_keep = new_keep or keep

	local id, last = '0', 0
	if c.entries then
		meta = writer.append_first()
	end
	if not forced and text == '~{}' then
		text = ''
		if new_keep and not keep then -- only an owner has changed
			call('HSET', c.position, 'st_keep', format('%d', new_keep), 'st_bytes', '0', 'st_due', '0')
		end
	elseif not new_keep then
		id, last = append(c.messages, c.position, meta, text)
	elseif due == tonumber(c.meta[6]) and c.bytes == tonumber(c.meta[7]) then
		id, last = append(c.messages, c.position, meta, text, 'st_keep', format('%d', new_keep))
	else
		id, last = append(c.messages, c.position, meta, text, 'st_keep', format('%d', new_keep),
			'st_bytes', format('%d', c.bytes), 'st_due', format('%d', due or 0))
	end

	local list -- names and records
	for i = 1, #touched do
		local f = c.fields[touched[i]]
		if f and list then
			list[#list + 1], list[#list + 2] = touched[i], record_of(f, id)
		elseif f then
			list = {touched[i], record_of(f, id)}
		end
	end
	if writer then
		writer.write(list, new_keep)
	elseif list then
		call('HSET', c.records, unpack(list))
	end
	if c.touched_owners then
		rare().write_owners()
		removed = true
	end
	if not keep and new_keep then
		call('PERSIST', c.position)
	end
	due = due or writer.read_due()
	if keep and removed and not list then
		define_writer().end_state(meta[4])
	end
	local keep_until = c.bytes > 0 and new_keep or 0
	if keep_until > 0 and (due == 0 or keep_until < due) then
		due = keep_until
	end
	return id, last, text, due, keep_until
end
