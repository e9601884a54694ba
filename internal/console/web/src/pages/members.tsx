import { useState } from "preact/hooks";
import { get, path, query } from "../api";
import { count, json, plural } from "../format";
import { useLoad } from "../hooks";
import { Ago, Card, Empty, Loading, Problem, Table } from "../parts/ui";
import { link } from "../router";
import type { Presence } from "../types";

const step = 10;

/** Members lists the clients in a channel. */
export function Members({ channel }: { channel: string }) {
  const [limit, setLimit] = useState(step);
  const { data, error } = useLoad(
    (signal) => get<Presence>(path("channels", channel, "presence") + query({ limit }), { signal }),
    [channel, limit],
    3000,
  );
  const users = data?.users === undefined ? "" : `, ${plural(data.users, "user")}`;
  return (
    <Card title="Members" note={data && plural(data.count, "client") + users} flush>
      {error?.status === 403 || error?.status === 400 ? (
        <Empty title="Presence is off here.">{error.message}</Empty>
      ) : (
        <Problem error={error} />
      )}
      {!data && !error && <Loading />}
      {data?.count === 0 && (
        <Empty title="No client is subscribed.">
          Messages are stored all the same. A client that subscribes with after receives them.
        </Empty>
      )}
      {data && data.clients.length > 0 && (
        <Table caption="Members" columns={["Client", "Since"]}>
          {data.clients.map((m) => (
            <tr key={m.client}>
              <th scope="row">
                <a class="name" href={link("clients", m.client)}>
                  {m.client}
                </a>
                {m.info !== undefined && <span class="under mono">{json(m.info)}</span>}
              </th>
              <td>{m.since !== undefined && <Ago at={m.since} />}</td>
            </tr>
          ))}
        </Table>
      )}
      {data?.cursor && limit < 1000 && (
        <div class="card-foot">
          <span>
            {count(data.clients.length)} of {count(data.count)}
          </span>
          <button type="button" class="button" onClick={() => setLimit(Math.min(1000, limit * 5))}>
            Show more
          </button>
        </div>
      )}
    </Card>
  );
}
