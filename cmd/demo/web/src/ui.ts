/** Small helpers for the page: elements, notices, countdowns and arrow keys. */
import { SwitchboardError } from "switchboard-client";

type Child = Node | string | number | false | undefined;
type Props<T> = Partial<Omit<T, "style" | "autocomplete" | "onsubmit">> & {
  [attribute: `data-${string}` | `aria-${string}`]: string | undefined;
  autocomplete?: string;
};

/** h makes an element with properties, attributes and children. Text is never parsed as HTML. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props<HTMLElementTagNameMap[K]> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name in element) (element as unknown as Record<string, unknown>)[name] = value;
    else if (value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...present(children));
  return element;
}

/** form makes a form that stays on the page. */
export function form(className: string, submit: () => unknown, ...children: Child[]): HTMLFormElement {
  const element = h("form", { className }, ...children);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return element;
}

/** svg makes an element of a drawing. */
export function svg(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** show replaces the children of an element. The focus stays on the element with the same id. */
export function show(parent: Element, ...children: Child[]): void {
  const focused = document.activeElement?.id;
  parent.replaceChildren(...present(children));
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

const present = (children: Child[]) =>
  children.filter((child) => child !== undefined && child !== false).map((child) => (typeof child === "number" ? String(child) : child));

let hideNotice: number | undefined;

/** notify shows a sentence for some seconds. */
export function notify(text: string): void {
  const notice = document.getElementById("notice")!;
  notice.textContent = text;
  notice.className = "shown";
  clearTimeout(hideNotice);
  hideNotice = setTimeout(() => (notice.className = ""), 5000);
}

/** attempt runs an action of the user, and shows why it is refused. */
export async function attempt(action: () => unknown, explain: (error: SwitchboardError) => string | undefined = () => undefined): Promise<void> {
  try {
    await action();
  } catch (error) {
    notify((error instanceof SwitchboardError && explain(error)) || (error as Error).message);
  }
}

/** seconds is the time until `until`, which is in ms since 1970. */
export const seconds = (until: number | undefined) => Math.max(0, Math.ceil(((until ?? 0) - Date.now()) / 1000));

/** arrows moves the focus between elements to the nearest one in the direction of an arrow key. One of them can be reached by Tab. */
export function arrows(container: HTMLElement | SVGElement, selector: string): void {
  const all = () => [...container.querySelectorAll<HTMLElement>(selector)];
  container.addEventListener("focusin", (event) => {
    for (const element of all()) element.tabIndex = element === event.target ? 0 : -1;
  });
  container.addEventListener("keydown", (event) => {
    const { key } = event as KeyboardEvent;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
    const from = document.activeElement;
    if ((!dx && !dy) || !from) return;
    event.preventDefault();
    const start = middle(from);
    const distances = all().map((element) => {
      const [x, y] = middle(element);
      const along = (x - start[0]) * dx! + (y - start[1]) * dy!;
      const aside = Math.abs((x - start[0]) * dy!) + Math.abs((y - start[1]) * dx!);
      return { element, distance: along > 1 ? along + 2 * aside : Infinity };
    });
    distances.sort((a, b) => a.distance - b.distance);
    if (distances[0] && distances[0].distance < Infinity) distances[0].element.focus();
  });
}

function middle(element: Element): [x: number, y: number] {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}
