-- A piece of the scripts that change states: functions that most updates do not need. They remove
-- fields and their parts, as state.go of package state does.
-- returns (rare) a table of these functions, and of those of state_owners.lua
-- cost O(log n) for each field that is removed

local function define_rare()
	local match, gmatch, byte, sub, concat = string.match, string.gmatch, string.byte, string.sub, table.concat
	local min = math.min
	local bytewise = 'B' < 'a' -- '<' follows the locale of the server

	local function is_before(a, b)
		for i = 1, min(#a, #b) do
			local x, y = byte(a, i), byte(b, i)
			if x ~= y then
				return x < y
			end
		end
		return #a < #b
	end

	local function sort(list)
		table.sort(list, not bytewise and is_before or nil)
		return list
	end

	local function touch(name)
		local touched = c.touched
		c.indexed = true
		if not touched[name] then
			touched[name] = true
			touched[#touched + 1] = name
		end
	end

	local function touch_owner(client)
		local touched = c.touched_owners or {}
		c.touched_owners = touched
		if not touched[client] then
			touched[client] = true
			touched[#touched + 1] = client
		end
	end

	local function note(part, name, value)
		local map = c.entry[part] or {}
		c.entry[part] = map
		map[name] = value
	end

	-- Reads the fields of a list that are not read yet.
	local function load(list)
		local missing = {}
		for i = 1, #list do
			if c.fields[list[i]] == nil then
				missing[#missing + 1] = list[i]
			end
		end
		for from = 1, #missing, 2000 do
			local to = min(from + 1999, #missing)
			local found = not c.blank and call('HMGET', c.records, unpack(missing, from, to)) or {}
			for i = from, to do
				get(missing[i], found[i - from + 1] or false)
			end
		end
	end

	-- Reads the fields of operations and conditions.
	local function load_names(ops, conditions)
		local list = {}
		for _, cond in ipairs(conditions or {}) do
			list[#list + 1] = cond.field
		end
		for _, op in ipairs(ops) do
			list[#list + 1] = op.field
			list[#list + 1] = op.parent
		end
		load(list)
	end

	local function parse_fields(o)
		o.fields, o.count = {}, 0
		for name in gmatch(o.names, '%S+') do
			o.fields[name], o.count = true, o.count + 1
		end
	end

	local function owner(client)
		local o = c.owners[client]
		if o == nil then
			o = parse_owner(client, c.keep and call('HGET', c.clients, client))
		end
		if o and not o.fields then
			parse_fields(o)
		end
		return o
	end

	local function load_owners()
		local list = c.keep and call('HGETALL', c.clients) or {}
		for i = 1, #list, 2 do
			if c.owners[list[i]] == nil then
				parse_owner(list[i], list[i + 1])
			end
			owner(list[i])
		end
	end

	local function note_gone(name, reason)
		note('gone', name, reason)
		if not (c.entry.set or c.entry.till or c.entry.away or c.entry.own or c.entry.back) then
			return
		end
		for _, part in ipairs({'set', 'till', 'away', 'own'}) do
			if c.entry[part] then
				c.entry[part][name] = nil
			end
		end
		for i = c.entry.back and #c.entry.back or 0, 1, -1 do
			if c.entry.back[i] == name then
				table.remove(c.entry.back, i)
			end
		end
	end

	local function grow(n)
		c.size = (c.size or 0) + n + 24
		if c.size > 32768 and not c.whole then
			c.entries = c.entries or {}
			c.entries[#c.entries + 1] = c.entry
			c.entry, c.size = {}, n + 24
		end
	end

	local none = {}

	-- Returns the names of the parts that st_p_ has for a field, or nil. After a few calls it reads
	-- all at once.
	local function stored_parts(name)
		c.part_count = c.part_count or (c.blank and 0 or call('ZCARD', c.parts))
		if c.part_count == 0 then
			return
		end
		c.part_reads = (c.part_reads or 0) + 1
		if c.part_reads > 16 and not c.part_lists then
			c.part_lists = {}
			for _, pair in ipairs(call('ZRANGE', c.parts, '0', '-1')) do
				local parent, part = match(pair, '^(%S+) (%S+)$')
				c.part_lists[parent] = c.part_lists[parent] or {}
				table.insert(c.part_lists[parent], part)
			end
		end
		if c.part_lists then
			return c.part_lists[name]
		end
		local list = {}
		for i, pair in ipairs(call('ZRANGEBYLEX', c.parts, '[' .. name .. ' ', '(' .. name .. '!')) do
			list[i] = sub(pair, #name + 2)
		end
		return list
	end

	-- Returns the parts of a field in the order of names.
	local function parts_of(name)
		local stored = stored_parts(name)
		if not stored and not c.adopted then
			return none
		end
		local list = {}
		load(stored or none)
		for _, part in ipairs(stored or none) do
			if c.fields[part] and c.fields[part].parent == name then
				list[#list + 1] = part
			end
		end
		for part in pairs(c.adopted and c.adopted[name] or {}) do
			if c.fields[part] and c.fields[part].parent == name then
				list[#list + 1] = part
			end
		end
		return c.adopted and sort(list) or list
	end

	local function set_parent(name, f, parent)
		if f.parent ~= parent then
			f.parent, c.indexed = parent, true
			c.adopted = c.adopted or {}
			c.adopted[parent] = c.adopted[parent] or {}
			c.adopted[parent][name] = true
		end
	end

	-- Removes a field and its parts, and appends their names to removed.
	local function remove(name, removed)
		local f = get(name)
		if not f then
			return
		end
		removed[#removed + 1] = name
		for _, part in ipairs(parts_of(name)) do
			remove(part, removed)
		end
		for client in gmatch(f.owners, '%S+') do -- none usually
			local o = owner(client)
			if o and o.fields[name] then
				o.fields[name], o.count = nil, o.count - 1
				touch_owner(client)
			end
		end
		c.bytes = c.bytes - #name - f.size
		c.fields[name] = false
		touch(name)
	end

	-- Ends a field and its parts. The reason is JSON.
	local function end_field(name, reason)
		local removed = {}
		remove(name, removed)
		for i = 1, #removed do
			grow(#removed[i])
			note_gone(removed[i], reason)
		end
	end

	-- Ends the whole state. If its records are lost, the bytes tell that its subscribers have fields.
	local function clear()
		if c.bytes == 0 and call('ZCARD', c.names) == 0 then
			return
		end
		c.entry.cleared = true
		load_owners()
		for client, o in pairs(c.owners) do
			if o.count > 0 then
				o.fields, o.count = {}, 0
				touch_owner(client)
			end
		end
		c.blank, c.bytes, c.due = true, 0, 0
	end

	local function expire()
		local list = sort(call('ZRANGEBYSCORE', c.ends, '-inf', format('%d', ms)))
		load(list)
		for _, name in ipairs(list) do
			local f = c.fields[name]
			if f then -- it has not ended with its parent
				end_field(name, f.away == end_of(f) and '"left"' or '"expired"')
			end
		end
	end

	-- Returns how many fields a group has before the operations.
	local function count_group(group)
		-- The group ends with a slash, and '0' is the next byte.
		local n = c.blank and 0 or call('ZLEXCOUNT', c.names, '[' .. group, '(' .. sub(group, 1, -2) .. '0')
		for _, name in ipairs(c.touched) do -- fields that were due
			if sub(name, 1, #group) == group then
				n = n - 1
			end
		end
		return n
	end

	return {
		touch = touch, touch_owner = touch_owner, note = note, load = load, load_names = load_names, sort = sort,
		owner = owner, load_owners = load_owners, grow = grow, parts_of = parts_of, set_parent = set_parent,
		remove = remove, end_field = end_field, clear = clear, expire = expire, count_group = count_group,
	}
end

function rare()
	local functions = define_rare()
	define_owners(functions)
	rare = function()
		return functions
	end
	return functions
end
