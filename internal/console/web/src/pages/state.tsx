import { useState } from "preact/hooks";
import { count, countdown, json, moment, plural } from "../format";
import { useDelayed, useNow } from "../hooks";
import { useLiveState } from "../parts/livestate";
import { Badge, Card, Empty, Loading, Problem, Table } from "../parts/ui";
import { useSamples } from "../samples";
import type { FieldValue } from "../types";

const step = 50;

/**
 * StateFields lists the fields of a channel, with ids and leases. A field of a client that is gone
 * is away.
 */
export function StateFields({ channel }: { channel: string }) {
  const [prefix, setPrefix] = useState("");
  const [most, setMost] = useState(step);
  const { data, error, retry } = useLiveState(channel, useDelayed(prefix), most);
  const fields = Object.entries(data?.fields ?? {});
  return (
    <Card
      title="State"
      note={data && plural(fields.length, "field") + (data.cursor ? " and more" : "")}
      flush
      actions={
        (fields.length > 5 || prefix) && (
          <input
            type="search"
            aria-label="Fields that begin with"
            placeholder="Beginning of a name"
            value={prefix}
            onInput={(e) => setPrefix(e.currentTarget.value)}
          />
        )
      }
    >
      <Problem error={error} retry={retry} />
      {!data && !error && <Loading />}
      {data && fields.length === 0 && (
        <Empty title={prefix ? "No field begins with this." : "The channel has no fields."}>
          {!prefix &&
            "A push or a publish with set makes one. Fields survive reconnects, and can end with a lease or with their owner."}
        </Empty>
      )}
      {fields.length > 0 && (
        <Table caption="Fields" columns={["Field", "Value", "Changed by message?", "Lease", "Owner?"]}>
          {fields.map(([name, value]) => (
            <FieldRow key={name} name={name} value={value} />
          ))}
        </Table>
      )}
      {data?.cursor && (
        <div class="card-foot">
          <span>The first {count(fields.length)}</span>
          <button type="button" class="button" onClick={() => setMost(most * 4)}>
            Show more
          </button>
        </div>
      )}
    </Card>
  );
}

function FieldRow({ name, value: field }: { name: string; value: FieldValue }) {
  const { skew } = useSamples();
  const now = useNow() + skew;
  const [id, value, until, away] = field;
  return (
    <tr>
      <th scope="row" class="mono">
        {name}
      </th>
      <td class="mono value">{field.length < 2 ? <em>too large for this page</em> : json(value)}</td>
      <td class="mono wide">{id}</td>
      <td>{until ? <time title={moment(until)}>{countdown(until - now)}</time> : <span class="soft">none</span>}</td>
      <td class="wide">{away ? <Badge tone="warn">away</Badge> : <span class="soft">–</span>}</td>
    </tr>
  );
}
