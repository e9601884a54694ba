-- A piece of the scripts that change states: functions that most updates do not need. They remove
-- fields, and record owners and parts, as state.go and owners.go of package state do.
-- returns (rare) a table of the functions
-- cost O(fields of the client) for a change of owners

local rare_functions

local function define_rare()
	local gmatch, byte = string.gmatch, string.byte
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

	local function json(text) -- text has no control characters
		return '"' .. string.gsub(text, '["\\]', '\\%0') .. '"'
	end

	local function parse_owner(record)
		local generation, ended, server, rest = match(record, '^(%-?%d+) (%d+) (%S*)(.*)$')
		local o = {generation = tonumber(generation), ended = tonumber(ended), server = server, fields = {}, count = 0}
		for name in gmatch(rest, '%S+') do
			o.fields[name], o.count = true, o.count + 1
		end
		return o
	end

	local function owner(client)
		local o = owners[client]
		if o == nil then
			local record = keep and call('HGET', clients, client)
			o = record and parse_owner(record) or false
			owners[client] = o
		end
		return o
	end

	local function load_owners()
		local list = keep and call('HGETALL', clients) or {}
		for i = 1, #list, 2 do
			if owners[list[i]] == nil then
				owners[list[i]] = parse_owner(list[i + 1])
			end
		end
	end

	local function note_gone(name, reason)
		note('gone', name, reason)
		if not (entry.set or entry.till or entry.away or entry.own or entry.back) then
			return
		end
		for _, part in ipairs({'set', 'till', 'away', 'own'}) do
			if entry[part] then
				entry[part][name] = nil
			end
		end
		for i = entry.back and #entry.back or 0, 1, -1 do
			if entry.back[i] == name then
				table.remove(entry.back, i)
			end
		end
	end

	local function grow(n)
		size = size + n + 24
		if size > 32768 and not whole then
			entries[#entries + 1] = entry
			entry, size = {}, n + 24
		end
	end

	local none = {}

	-- Returns the names of the parts that st_p_ has for a field, or nil. After a few calls it reads
	-- all at once.
	local function stored_parts(name)
		part_count = part_count or (blank and 0 or call('ZCARD', parts))
		if part_count == 0 then
			return
		end
		part_reads = part_reads + 1
		if part_reads > 16 and not part_lists then
			part_lists = {}
			for _, pair in ipairs(call('ZRANGE', parts, '0', '-1')) do
				local parent, part = match(pair, '^(%S+) (%S+)$')
				part_lists[parent] = part_lists[parent] or {}
				table.insert(part_lists[parent], part)
			end
		end
		if part_lists then
			return part_lists[name]
		end
		local list = {}
		for i, pair in ipairs(call('ZRANGEBYLEX', parts, '[' .. name .. ' ', '(' .. name .. '!')) do
			list[i] = sub(pair, #name + 2)
		end
		return list
	end

	-- Returns the parts of a field in the order of names.
	local function parts_of(name)
		local stored = stored_parts(name)
		if not stored and not adopted then
			return none
		end
		local list = {}
		load(stored or none)
		for _, part in ipairs(stored or none) do
			if fields[part] and fields[part].parent == name then
				list[#list + 1] = part
			end
		end
		for part in pairs(adopted and adopted[name] or {}) do
			if fields[part] and fields[part].parent == name then
				list[#list + 1] = part
			end
		end
		return adopted and sort(list) or list
	end

	local function set_parent(name, f, parent)
		if f.parent ~= parent then
			f.parent = parent
			adopted = adopted or {}
			adopted[parent] = adopted[parent] or {}
			adopted[parent][name] = true
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
				touch(touched_owners, client)
			end
		end
		bytes = bytes - #name - #f.value
		fields[name] = false
		touch(touched, name)
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

	local function clear()
		if call('ZCARD', names) == 0 then
			return
		end
		entry.cleared = true
		load_owners()
		for client, o in pairs(owners) do
			if o.count > 0 then
				o.fields, o.count = {}, 0
				touch(touched_owners, client)
			end
		end
		blank, bytes, due = true, 0, 0
	end

	local function expire()
		local list = sort(call('ZRANGEBYSCORE', ends, '-inf', format('%d', ms)))
		load(list)
		for _, name in ipairs(list) do
			local f = fields[name]
			if f then -- it has not ended with its parent
				end_field(name, f.away == end_of(f) and '"left"' or '"expired"')
			end
		end
	end

	local function owner_list(f)
		local list = {}
		for client in gmatch(f.owners, '%S+') do
			list[#list + 1] = client
		end
		return list
	end

	local function set_owners(name, f, list)
		local texts = {}
		for i = 1, #list do
			texts[i] = json(list[i])
		end
		f.owners = #list > 0 and ' ' .. concat(list, ' ') or ''
		note('own', name, '[' .. concat(texts, ',') .. ']')
		touch(touched, name)
	end

	-- Ends the grace period of a field.
	local function set_back(name, f)
		f.away = 0
		touch(touched, name)
		grow(2 * #name)
		entry.back = entry.back or {}
		entry.back[#entry.back + 1] = name
		if entry.till then
			entry.till[name] = nil
		end
		if f.lease > 0 then
			note('till', name, format('%d', f.lease))
		end
	end

	-- Makes an owned field away or not away, as its owners are connected or not.
	local function check_owners(name)
		local f = get(name)
		if not f or f.owners == '' then
			return
		end
		local connected = false
		for client in gmatch(f.owners, '%S+') do
			local o = owner(client)
			if o and o.ended == 0 then
				connected = true
				break
			end
		end
		if connected then
			if f.away ~= 0 then
				set_back(name, f)
			end
		elseif f.away == 0 and f.grace == 0 then
			end_field(name, '"left"')
		elseif f.away == 0 then
			f.away = f.grace > 0 and ms + f.grace or -1
			touch(touched, name)
			grow(#name)
			note('away', name, format('%d', end_of(f)))
		end
	end

	local function owned_names(o)
		local list = {}
		for name in pairs(o.fields) do
			list[#list + 1] = name
		end
		load(list)
		return sort(list)
	end

	local function check_owned(o)
		for _, name in ipairs(owned_names(o)) do
			check_owners(name)
		end
	end

	-- Returns whether a connection is too old to change the state.
	local function is_fenced(o, generation, server)
		if not o or o.generation ~= generation then
			return o and o.generation > generation
		end
		return o.ended > 0 and (o.server == '' or o.server == server)
	end

	local function new_owner(client)
		local o = {generation = 0, ended = 0, server = '', fields = {}, count = 0}
		owners[client] = o
		return o
	end

	local function remove_owner(name, f, client)
		local o, left, n = owner(client), {}, #name
		for _, one in ipairs(owner_list(f)) do
			if one ~= client then
				left[#left + 1] = one
				n = n + #one + 3
			end
		end
		if o and o.fields[name] then
			o.fields[name], o.count = nil, o.count - 1
			touch(touched_owners, client)
		end
		grow(n)
		set_owners(name, f, left)
	end

	-- Ends the ownership of a client, or that of all owners if client is ''.
	local function disown(name, client)
		local f = get(name)
		if not f then -- it has ended with a parent that the update has disowned
			return
		end
		for _, one in ipairs(owner_list(f)) do
			if client == '' or client == one then
				remove_owner(name, f, one)
			end
		end
		if f.owners ~= '' then
			check_owners(name)
			return
		end
		f.grace = 0
		touch(touched, name)
		if f.away ~= 0 then
			set_back(name, f)
		end
	end

	-- Makes a client an owner of a field. Returns false if the field has ended with a parent that the
	-- update has disowned.
	local function add_owner(name, grace, client)
		local f = get(name)
		if not f then
			return false
		end
		f.grace = grace
		local o = owner(client) or new_owner(client)
		local list, at, found = owner_list(f), 1, false
		for i, one in ipairs(list) do
			found = found or one == client
			if is_before(one, client) then
				at = i + 1
			end
		end
		if not found then
			table.insert(list, at, client)
			set_owners(name, f, list)
		end
		if not o.fields[name] then
			o.fields[name], o.count = true, o.count + 1
		end
		return true
	end

	-- Records that an owner is connected. added are fields that it has become an owner of.
	local function connect(o, client, generation, server, added)
		local was_ended = o.ended > 0
		o.generation, o.server, o.ended = generation, server, 0
		touch(touched_owners, client)
		if was_ended then
			check_owned(o)
			return
		end
		for _, name in ipairs(sort(added)) do -- its other fields are not away
			check_owners(name)
		end
	end
	-- Writes the owners that have changed.
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

	return {
		sort = sort, owner = owner, load_owners = load_owners, new_owner = new_owner,
		is_fenced = is_fenced, clear = clear, expire = expire, parts_of = parts_of,
		set_parent = set_parent, remove = remove, end_field = end_field, owned_names = owned_names,
		check_owned = check_owned, check_owners = check_owners, remove_owner = remove_owner, disown = disown,
		add_owner = add_owner, connect = connect, write_owners = write_owners,
	}
end

function rare()
	rare_functions = rare_functions or define_rare()
	return rare_functions
end
