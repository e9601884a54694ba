import { useState } from "preact/hooks";
import { get, query } from "../api";
import { count } from "../format";
import { useLoad } from "../hooks";
import { Card, Code, Empty, Loading, Page, Problem, Table } from "../parts/ui";
import { link } from "../router";
import type { Resource } from "./types";

const pageSize = 100;

async function loadResources(most: number, signal: AbortSignal): Promise<{ resources: Resource[]; more: boolean }> {
  const resources: Resource[] = [];
  let cursor: string | undefined;
  do {
    const page: { resources: Resource[]; cursor?: string } = await get(
      "/v1/holds" + query({ limit: pageSize, cursor }),
      { signal },
    );
    resources.push(...page.resources);
    cursor = page.cursor;
  } while (cursor && resources.length < most);
  return { resources, more: !!cursor };
}

/** Holds lists the resources: shows with seats, products with units. */
export function Holds() {
  const [most, setMost] = useState(pageSize);
  const { data, error, reload } = useLoad((signal) => loadResources(most, signal), [most], 3000);
  return (
    <Page title="Holds" about="Seats and units that users hold while they pay, and those that are sold.">
      <Problem error={error} retry={reload} />
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {data.resources.length === 0 && (
            <Empty title="There is no resource.">
              <p>A resource is a show with seats, or a product with units. Create one:</p>
              <Code
                label="A resource"
                text={`curl -X PUT ${location.origin}/v1/holds/play-7 \\\n  -d '{"seats": ["A1..A20", "B1..B20"]}'`}
              />
            </Empty>
          )}
          {data.resources.length > 0 && (
            <Table caption="Resources" columns={["Resource", "Taken", "+Free", "+Held", "+Sold", "+Capacity?"]}>
              {data.resources.map((r) => (
                <tr key={r.resource}>
                  <th scope="row">
                    <a class="name" href={link("holds", r.resource)}>
                      {r.resource}
                    </a>
                  </th>
                  <td>
                    <Occupancy {...r} />
                  </td>
                  <td class="num">{count(r.free)}</td>
                  <td class="num">{count(r.held)}</td>
                  <td class="num">{count(r.sold)}</td>
                  <td class="num wide">{count(r.capacity)}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.more && (
            <div class="card-foot">
              <span>The first {count(data.resources.length)}</span>
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

/** Occupancy is a bar of the sold and the held part. */
export function Occupancy({ sold, held, capacity }: { sold: number; held: number; capacity: number }) {
  const part = (n: number) => (100 * n) / Math.max(1, capacity);
  return (
    <svg
      class="occupancy"
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${count(sold)} sold, ${count(held)} held of ${count(capacity)}`}
    >
      <rect class="free" width="100" height="6" />
      <rect class="sold" width={part(sold)} height="6" />
      <rect class="held" x={part(sold)} width={part(held)} height="6" />
    </svg>
  );
}
