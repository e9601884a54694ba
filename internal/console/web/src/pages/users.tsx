import { useState } from "preact/hooks";
import { get, query } from "../api";
import { count, plural } from "../format";
import { useLoad } from "../hooks";
import { Card, Empty, Loading, Page, Problem, Table } from "../parts/ui";
import { go, link } from "../router";
import { useSamples } from "../samples";
import type { OnlineUsers } from "../types";

const pageSize = 100;

/** loadUsers reads pages of the online users until there are `most` of them. */
async function loadUsers(
  most: number,
  signal: AbortSignal,
): Promise<Required<Pick<OnlineUsers, "count" | "connections" | "users">> & { more: boolean }> {
  const users: NonNullable<OnlineUsers["users"]> = [];
  let cursor: string | undefined;
  for (;;) {
    const page: OnlineUsers = await get<OnlineUsers>("/v1/users" + query({ limit: Math.min(1000, most), cursor }), {
      signal,
    });
    users.push(...(page.users ?? []));
    cursor = page.cursor;
    if (!cursor || users.length >= most) return { ...page, users, more: !!cursor };
  }
}

/** Users lists the users that are online, and opens any user by name. */
export function Users() {
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(pageSize);
  const { data, error, reload } = useLoad((signal) => loadUsers(most, signal), [most], 5000);
  const name = search.trim();
  const { servers } = useSamples();
  // The sum of all instances has a user on two of them twice. A complete list does not.
  const upTo = data?.more && servers.filter((s) => s.alive).length > 1 ? "up to " : "";
  const online = data?.more ? data.count : (data?.users.length ?? 0);
  const found = (data?.users ?? []).filter((u) => u.user.includes(name) || u.clients.some((c) => c.includes(name)));
  const open = (event: Event) => {
    event.preventDefault();
    if (name) go("users", name);
  };
  return (
    <Page
      title="Users"
      about={data && `${upTo}${plural(online, "user")} online, ${plural(data.connections, "connection")}`}
    >
      <Problem error={error} retry={reload} />
      <form class="toolbar" role="search" onSubmit={open}>
        <input
          type="search"
          aria-label="Search users"
          placeholder="Name of a user"
          value={search}
          onInput={(e) => setSearch(e.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={!name}>
          Open this user
        </button>
      </form>
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {found.length === 0 &&
            (name ? (
              <Empty title="No user on this page has this name.">
                Users that are offline are not listed. <a href={link("users", name)}>Open {name}</a>
              </Empty>
            ) : (
              <Empty title="No user is online.">
                Clients with a user appear here as soon as they connect. Clients without a user count as connections
                only. <a href={link("start")}>Connect one</a>
              </Empty>
            ))}
          {found.length > 0 && (
            <Table caption="Users that are online" columns={["User", "Devices"]}>
              {found.map((u) => (
                <tr key={u.user}>
                  <th scope="row">
                    <a class="name" href={link("users", u.user)}>
                      {u.user}
                    </a>
                  </th>
                  <td class="names">
                    {u.clients.map((c) => (
                      <a key={c} href={link("clients", c)}>
                        {c.slice(c.lastIndexOf("/") + 1)}
                      </a>
                    ))}
                  </td>
                </tr>
              ))}
            </Table>
          )}
          {data.more && (
            <div class="card-foot">
              <span>
                {count(data.users.length)} of about {count(data.count)}
              </span>
              <button type="button" class="button" onClick={() => setMost(most * 4)}>
                Show more
              </button>
            </div>
          )}
        </Card>
      )}
    </Page>
  );
}
