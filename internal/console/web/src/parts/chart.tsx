// A graph of values over time. Its head shows the latest values, or those under the pointer.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { time } from "../format";
import { useTheme } from "../theme";
import { Card } from "./ui";

export interface Line {
  /** Absent if the graph has one line. */
  label?: string;
  values: (number | null)[];
}

const height = 132; // px

// The time axis ends now. It begins with the first sample, but shows one to five minutes.
const [shortest, longest] = [60, 300]; // seconds

/** Chart draws up to two lines. Values that are null leave a gap. */
export function Chart({
  title,
  times,
  lines,
  format,
  unit = "",
  whole = false,
  decades = false,
  empty,
}: {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  unit?: string;
  /** True for values that are whole numbers: then the labels of the axis are, too. */
  whole?: boolean;
  /** True for a logarithmic axis, for values above zero. */
  decades?: boolean;
  /** What the graph says if it has no value yet. */
  empty: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const [theme] = useTheme();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    plot.current = new uPlot(options(element, lines.length, format, { whole, decades }, setHovered), [[]], element);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [theme, lines.length]);
  useEffect(() => {
    plot.current?.setData([times, ...lines.map((l) => l.values)] as uPlot.AlignedData);
  });

  const at = hovered ?? times.length - 1;
  const hasValues = lines.some((l) => l.values.some((v) => v !== null));
  const valueOf = (line: Line) => {
    const value = line.values[at];
    return value === null || value === undefined ? "–" : format(value);
  };
  const when = hovered === null ? "" : time((times[hovered] ?? 0) * 1000);
  return (
    <Card title={title} note={when}>
      <p class="readings">
        {lines.map((line, i) => (
          <span key={line.label} class={`reading series-${i + 1}`}>
            {line.label && <span class="reading-label">{line.label}</span>}
            <span class="reading-value">{valueOf(line)}</span>
            {unit && <span class="reading-unit">{unit}</span>}
          </span>
        ))}
      </p>
      <div class="chart" ref={box} aria-hidden="true">
        {!hasValues && <p class="chart-empty">{empty}</p>}
      </div>
    </Card>
  );
}

/** options returns uPlot's options, with the colors of the style sheet. */
function options(
  element: HTMLElement,
  lines: number,
  format: (value: number) => string,
  { whole, decades }: { whole: boolean; decades: boolean },
  hover: (at: number | null) => void,
): uPlot.Options {
  const probe = document.createElement("span");
  element.append(probe);
  const color = (name: string) => {
    probe.className = name;
    return getComputedStyle(probe).color;
  };
  const axis = { stroke: color("ink-soft"), font: "11px system-ui", ticks: { show: false } };
  const grid = { stroke: color("ink-line"), width: 1 };
  const strokes = Array.from({ length: lines }, (_, i) => color(`ink-series-${i + 1}`));
  const fill = color("ink-fill");
  probe.remove();
  return {
    width: element.clientWidth || 300,
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: { range: (_plot, min, max) => [max - Math.min(longest, Math.max(shortest, max - min)), max] },
      y: decades
        ? { distr: 3, range: (_plot, min, max) => decadesAround(min ?? 0.001, max ?? 0.01) }
        : { range: (_plot, _min, max) => [0, max > 0 ? max * 1.15 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        splits: (_plot, _axis, min, max) => agoSplits(min, max),
        values: (_plot, splits) => agoLabels(splits),
      },
      {
        ...axis,
        grid,
        space: 34,
        size: 52,
        values: (_plot, ticks) => ticks.map((v) => (v === 0 ? "0" : format(v).replace(/\.0(?= )/, ""))),
        ...(whole && { incrs: wholeSteps }),
        // Without a filter, uPlot leaves out labels of a logarithmic axis that it finds too close.
        ...(decades && {
          splits: (_plot: uPlot, _axis: number, min: number, max: number) => powersOfTen(min, max),
          filter: (_plot: uPlot, splits: number[]) => splits,
        }),
      },
    ],
    series: [
      {},
      ...strokes.map((stroke, i) => ({
        stroke,
        width: 1.75,
        points: { show: false },
        ...(i === 0 && lines === 1 ? { fill } : {}),
      })),
    ],
    hooks: { setCursor: [(plot) => hover(plot.cursor.idx ?? null)] },
  };
}

const wholeSteps = Array.from({ length: 10 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

/** agoSplits returns times that end with the last one. None is below the labels of the other axis. */
function agoSplits(min: number, max: number): number[] {
  const step = max - min > 120 ? 60 : max - min > 60 ? 30 : 15;
  return Array.from({ length: Math.ceil(((max - min) * 0.95) / step) }, (_, i) => max - i * step).reverse();
}

const agoLabels = (splits: number[]) =>
  splits.map((at) => {
    const ago = Math.round((splits.at(-1) ?? at) - at);
    return ago === 0 ? "now" : ago % 60 === 0 ? `−${ago / 60} min` : `−${ago} s`;
  });

/** decadesAround returns the powers of ten around the values, at least one decade. */
function decadesAround(min: number, max: number): [number, number] {
  const low = Math.floor(Math.log10(min));
  return [10 ** low, 10 ** Math.max(low + 1, Math.ceil(Math.log10(max)))];
}

/** powersOfTen returns up to five powers of ten: more labels would overlap. */
export function powersOfTen(min: number, max: number): number[] {
  const low = Math.round(Math.log10(min));
  const decades = Math.round(Math.log10(max)) - low;
  const step = Math.max(1, Math.ceil(decades / 4));
  return Array.from({ length: Math.floor(decades / step) + 1 }, (_, i) => 10 ** (low + i * step));
}
