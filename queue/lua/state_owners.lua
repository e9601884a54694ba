-- A piece of the scripts that change states: it records owners, as owners.go of package state does.
-- returns (define_owners) nothing: functions, in a table with those of state_rare.lua
-- cost O(fields of the client) for a change of owners

-- Adds functions to r, the table of state_rare.lua.
local function define_owners(r)
	local gmatch, concat = string.gmatch, table.concat

	local function json(text) -- text has no control characters
		return '"' .. string.gsub(text, '["\\]', '\\%0') .. '"'
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
		r.note('own', name, '[' .. concat(texts, ',') .. ']')
		r.touch(name)
	end

	-- Ends the grace period of a field.
	local function set_back(name, f)
		f.away = 0
		r.touch(name)
		r.grow(2 * #name)
		c.entry.back = c.entry.back or {}
		c.entry.back[#c.entry.back + 1] = name
		if c.entry.till then
			c.entry.till[name] = nil
		end
		if f.lease > 0 then
			r.note('till', name, format('%d', f.lease))
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
			local o = r.owner(client)
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
			r.end_field(name, '"left"')
		elseif f.away == 0 then
			f.away = f.grace > 0 and ms + f.grace or -1
			r.touch(name)
			r.grow(#name)
			r.note('away', name, format('%d', end_of(f)))
		end
	end

	local function owned_names(o)
		local list = {}
		for name in pairs(o.fields) do
			list[#list + 1] = name
		end
		r.load(list)
		return r.sort(list)
	end

	local function check_owned(o)
		for _, name in ipairs(owned_names(o)) do
			check_owners(name)
		end
	end

	local function new_owner(client)
		local o = {generation = 0, ended = 0, server = '', fields = {}, count = 0}
		c.owners[client] = o
		return o
	end

	local function remove_owner(name, f, client)
		local o, left, n = r.owner(client), {}, #name
		for _, one in ipairs(owner_list(f)) do
			if one ~= client then
				left[#left + 1] = one
				n = n + #one + 3
			end
		end
		if o and o.fields[name] then
			o.fields[name], o.count = nil, o.count - 1
			r.touch_owner(client)
		end
		r.grow(n)
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
		r.touch(name)
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
		local o = r.owner(client) or new_owner(client)
		local list, found = owner_list(f), false
		for _, one in ipairs(list) do
			found = found or one == client
		end
		if not found then
			list[#list + 1] = client
			set_owners(name, f, r.sort(list))
		end
		if not o.fields[name] then
			o.fields[name], o.count = true, o.count + 1
			r.touch_owner(client)
		end
		return true
	end

	-- Records that an owner is connected. added are fields that it has become an owner of.
	local function connect(o, client, generation, server, added)
		local was_ended = o.ended > 0
		if was_ended or o.generation ~= generation or o.server ~= server then
			o.generation, o.server, o.ended = generation, server, 0
			r.touch_owner(client)
		end
		if was_ended then
			check_owned(o)
			return
		end
		for _, name in ipairs(r.sort(added)) do -- its other fields are not away
			check_owners(name)
		end
	end
	-- Writes the owners that have changed.
	local function write_owners()
		local set, gone = {}, {}
		for i = 1, #c.touched_owners do
			local client = c.touched_owners[i]
			local o = c.owners[client]
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
		in_batches('HSET', c.clients, set)
		in_batches('HDEL', c.clients, gone)
	end

	r.new_owner, r.add_owner, r.remove_owner, r.disown, r.write_owners = new_owner, add_owner, remove_owner, disown, write_owners
	r.owned_names, r.check_owned, r.check_owners, r.connect = owned_names, check_owned, check_owners, connect
end
