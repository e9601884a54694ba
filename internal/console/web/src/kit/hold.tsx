import { memo } from "./memo";
import { get, path } from "../api";
import { count, countdown, json, plural } from "../format";
import { useLoad, useNow } from "../hooks";
import { useLiveState } from "../parts/livestate";
import { Badge, Card, Empty, Facts, Loading, Page, Problem, Table } from "../parts/ui";
import { link } from "../router";
import { useSamples } from "../samples";
import type { FieldValue } from "../types";
import { Occupancy } from "./holds";
import { expand, rowsOf } from "./seats";
import type { Hold, Resource } from "./types";

const mostFields = 20_000; // 10,000 seats, and a record for each of their holds

interface Active extends Hold {
  id: string;
  until: number | undefined;
}

/** HoldPage shows a resource: its seats as they change, and who holds them. */
export function HoldPage({ name }: { name: string }) {
  const channel = `hold:${name}`;
  const state = useLiveState(channel, "", mostFields);
  const { data, error, reload } = useLoad(
    (signal) => get<Resource>(path("holds", name), { signal, exact: true }),
    [name, state.data?.id ?? 0],
    5000,
  );
  const trail = { label: "Holds", href: link("holds") };
  if (error?.status === 404)
    return (
      <Page title={name} trail={trail}>
        <Card>
          <Empty title="There is no such resource.">
            Create it with <code>PUT /v1/holds/{name}</code>.
          </Empty>
        </Card>
      </Page>
    );
  const fields = state.data?.fields ?? {};
  const holds = activeHolds(fields);
  return (
    <Page
      title={name}
      trail={trail}
      actions={
        <a class="button" href={link("channels", channel)}>
          Channel {channel}
        </a>
      }
    >
      <Problem error={error ?? state.error} retry={error ? reload : state.retry} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <Facts
            items={[
              ["Free", count(data.free)],
              ["Held", count(data.held)],
              ["Sold", count(data.sold)],
              ["Capacity", count(data.capacity)],
            ]}
          />
          <Card
            title={
              <>
                {data.seats ? "Seats" : "Units"} <Badge tone="good">live</Badge>
              </>
            }
            note={<Legend />}
          >
            {data.seats ? (
              <SeatMap id={state.data?.id ?? 0} seats={data.seats} fields={fields} />
            ) : (
              <Occupancy {...data} />
            )}
          </Card>
          <Card title="Holds and sales" note={plural(holds.length, "record")} flush>
            {holds.length === 0 && <Empty title="Every place is free." />}
            {holds.length > 0 && (
              <Table
                caption="Holds and sales"
                columns={["Id", "User", data.seats ? "Seats" : "+Units", "State", "Ends in"]}
              >
                {holds.slice(0, 200).map((h) => (
                  <HoldRow key={h.id} hold={h} />
                ))}
              </Table>
            )}
            {holds.length > 200 && <p class="card-foot">The newest 200 of {count(holds.length)}</p>}
          </Card>
          {data.data !== undefined && (
            <Card title="Data">
              <pre class="mono" tabIndex={0}>
                {json(data.data, 2)}
              </pre>
            </Card>
          )}
        </>
      )}
    </Page>
  );
}

const Legend = () => (
  <span class="legend">
    <i class="free" /> free <i class="held" /> held <i class="sold" /> sold
  </span>
);

/**
 * activeHolds returns the holds and sales that have places, the newest first. The end of a hold is
 * that of its seats.
 */
function activeHolds(fields: Record<string, FieldValue>): Active[] {
  return Object.entries(fields)
    .filter(([name]) => name.startsWith("$$hold/"))
    .map(([name, [, value]]) => {
      const hold = value as Hold;
      return { ...hold, id: name.slice("$$hold/".length), until: fields[`seat/${hold.seats[0]}`]?.[2] };
    })
    .filter((h) => h.state === "sold" || (h.state === "held" && h.until !== undefined))
    .sort((a, b) => b.created - a.created);
}

function HoldRow({ hold }: { hold: Active }) {
  const { skew } = useSamples();
  const now = useNow() + skew;
  return (
    <tr>
      <th scope="row" class="mono">
        {hold.id}
      </th>
      <td>{hold.user ? <a href={link("users", hold.user)}>{hold.user}</a> : "–"}</td>
      <td class={hold.units ? "num" : "value"}>{hold.units ? hold.seats.length : hold.seats.join(", ")}</td>
      <td>{hold.state === "sold" ? <Badge tone="accent">sold</Badge> : <Badge tone="warn">held</Badge>}</td>
      <td>{hold.until ? countdown(hold.until - now) : "–"}</td>
    </tr>
  );
}

/**
 * SeatMap draws a square for each seat, in rows by name. It is drawn again only if the state or the
 * seats have changed.
 */
const SeatMap = memo(
  ({ seats, fields }: { id: number; seats: string[]; fields: Record<string, FieldValue> }) => {
    const any = seats.includes("*");
    const taken = Object.keys(fields)
      .filter((f) => f.startsWith("seat/"))
      .map((f) => f.slice("seat/".length));
    const rows = rowsOf(any ? taken : expand(seats));
    if (rows.length === 0)
      return (
        <Empty title="No place is taken.">
          This resource has seats of any name. They appear here when they are held.
        </Empty>
      );
    return (
      <div class="seats" role="img" aria-label={`${plural(taken.length, "seat")} taken. The table below lists them.`}>
        {rows.map((row) => (
          <div key={row.label} class="seat-row">
            <span class="seat-label">{row.label || "other"}</span>
            <div class="seat-list">
              {row.seats.map((seat) => {
                const value = fields[`seat/${seat}`]?.[1] as { s?: string } | undefined;
                const status = value?.s === "sold" ? "sold" : value ? "held" : "free";
                return (
                  <i key={seat} class={`seat ${status}`} title={`${seat}: ${status}`}>
                    {row.label ? seat.slice(row.label.length).replace(/^[-_.:]/, "") : seat}
                  </i>
                );
              })}
            </div>
          </div>
        ))}
      </div>
    );
  },
  (before, after) => before.id === after.id && json(before.seats) === json(after.seats),
);
