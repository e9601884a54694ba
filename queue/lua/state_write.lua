-- A piece of the scripts that change states: it appends the entries of a change, and writes the
-- fields. All commands that may fail for the type of a record come before the first write.
-- ARGV[4] minimum TTL of mq_m without a state, ms
-- returns (commit) the id of the last entry, the id before it, the entry, and when the next field
--         ends, or the whole state, or 0; the id is '0' if nothing was appended
-- cost O(log n) for each field that has changed

-- Functions in a function take less time to create: they find the variables of the script faster.
local function define_commit()
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
			out[#out + 1] = '"by":' .. e.by
		end
		if e.data then
			out[#out + 1] = '"data":' .. e.data
		end
		return '~{' .. concat(out, ',') .. '}'
	end

	local d -- the changes of the records: lists of arguments, nil if they are empty

	local function plan_write(list, score, member)
		local words = d[list] or {}
		d[list] = words
		words[#words + 1] = score or member
		if score then
			words[#words + 1] = member
		end
	end

	-- Sets d. Returns the next due time, nil if it has to be read.
	local function diff()
		local earliest = due
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
				if was and was > 0 and was == due then
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
		return earliest
	end

	local function check_types()
		if d.add or d.gone then
			call('ZCARD', names)
		end
		if d.ends or d.no_ends then
			call('ZCARD', ends)
		end
		if (d.parts or d.no_parts) and not part_count then
			call('ZCARD', parts)
		end
	end

	-- Writes the fields. Returns how many exist.
	local function write_fields(id)
		local list = {}
		for i = 1, #touched do
			local name = touched[i]
			local f = fields[name]
			if f then
				list[#list + 1] = name
				list[#list + 1] = format('%s %d %d %d %s %s%s\n', f.id or id, f.lease, f.away, f.grace, f.holder,
					f.parent == '' and '~' or f.parent, f.owners) .. f.value
			end
		end
		in_batches('HSET', records, list)
		if next(d) then
			in_batches('HDEL', records, d.gone)
			in_batches('ZADD', names, d.add)
			in_batches('ZREM', names, d.gone)
			in_batches('ZADD', ends, d.ends)
			in_batches('ZREM', ends, d.no_ends)
			in_batches('ZADD', parts, d.parts)
			in_batches('ZREM', parts, d.no_parts)
		end
		return #list / 2
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

	-- new_keep is the end of the state, nil if it stays. forced is true for an update that was
	-- accepted: it has an entry even if nothing has changed.
	return function(new_keep, forced)
		local texts = entries
		for i = 1, #entries do
			texts[i] = encode(entries[i])
		end
		local text = encode(entry)
		if forced or text ~= '~{}' then
			texts[#texts + 1] = text
		end

		local earliest = diff()
		local removed = d.gone or blank
		if blank then
			local written = d.add or #touched_owners > 0
			new_keep = (keep or written) and (new_keep or -1)
		else
			check_types()
			new_keep = new_keep or keep
		end
		local id, last = append_entries(texts, new_keep, earliest)
		if blank and new_keep then
			call('UNLINK', records, names, ends, parts, keep and parts or clients)
		end
		local count = write_fields(id)
		if #touched_owners > 0 then
			rare().write_owners()
			removed = true
		end
		if not keep and new_keep then
			call('PERSIST', position)
		end
		due = earliest
		if not due then
			due = tonumber(call('ZRANGE', ends, '0', '0', 'WITHSCORES')[2] or 0)
			call('HSET', position, 'st_due', format('%d', due))
		end
		if keep and count == 0 and removed and call('EXISTS', records, clients) == 0 then
			-- The state has ended. mq_m gets a TTL again, and does not expire before the messages.
			local ttl_of_position = tonumber(ARGV[4])
			local left = max(ttl_of_position + math.floor(ttl / 8), tonumber(meta[4] or 0) - ms + ttl_of_position - ttl)
			call('HDEL', position, 'st_keep', 'st_due', 'st_bytes')
			call('PEXPIRE', position, format('%d', left))
		end
		local next_due, keep_until = due, bytes > 0 and new_keep or 0
		if keep_until > 0 and (due == 0 or keep_until < due) then
			next_due = keep_until
		end
		return id, last, texts[#texts] or '', next_due, keep_until
	end
end

local commit = define_commit()
