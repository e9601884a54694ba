/** Small helpers of the pages: elements, notices, countdowns and arrow keys. */
import { SwitchboardError } from "switchboard-client";

type Child = Node | string | number | false | undefined;
type Props = Record<string, string | number | undefined>;

/** h makes an element with attributes and children. Text is never parsed as HTML. */
export function h(tag: string, attributes: Props = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  show(element, ...children);
  return element;
}

/** svg makes an element of a drawing. */
export function svg(tag: string, attributes: Props, ...children: Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element as SVGElement;
}

export function setAttributes(element: Element, attributes: Props): void {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) element.setAttribute(name, String(value));
}

/** button makes a button. The id keeps its focus when it is drawn again. */
export function button(id: string, text: string, className: string, action: () => unknown): HTMLElement {
  const element = h("button", { id, class: className }, text);
  onClick(element, action);
  return element;
}

export function onClick(element: Element, action: () => unknown): void {
  element.addEventListener("click", () => void attempt(action));
}

/** show replaces the children of an element. The focus stays on the element with the same id. */
export function show(parent: Element, ...children: Child[]): void {
  const focused = document.activeElement?.id;
  parent.replaceChildren(...children.filter((child) => child !== undefined && child !== false).map(toNode));
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

const toNode = (child: Child) => (child instanceof Node ? child : String(child));

/** clone returns a copy of a template of index.html. */
export function clone(id: string): HTMLElement {
  const template = document.getElementById(id) as HTMLTemplateElement;
  return template.content.firstElementChild!.cloneNode(true) as HTMLElement;
}

/** find returns the element with a selector, which exists. */
export function find<T extends Element = HTMLElement>(root: ParentNode, selector: string): T {
  return root.querySelector<T>(selector)!;
}

/** onSubmit calls a function with the inputs of a form. The browser stays on the page. */
export function onSubmit(form: HTMLFormElement, action: (inputs: Record<string, string>, by: string) => unknown): void {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const inputs = Object.fromEntries(new FormData(form)) as Record<string, string>;
    void attempt(() => action(inputs, (event.submitter as HTMLButtonElement | null)?.value ?? ""));
  });
}

let hideNotice: number | undefined;

/** notify shows a sentence for some seconds. */
export function notify(text: string): void {
  const notice = document.getElementById("notice")!;
  notice.textContent = text;
  notice.className = "shown";
  clearTimeout(hideNotice);
  hideNotice = setTimeout(() => (notice.className = ""), 5000);
}

/** The sentences for refusals that the pages do not explain themselves, by code. */
const sentences: Record<string, string> = {
  unauthorized: "The name or the password is wrong.",
  full: "The room is full.",
  not_found: "It does not exist any more.",
  rate_limited: "Too fast. Wait a moment.",
  lost: "The connection is lost. It returns by itself.",
  unknown_outcome: "The connection was lost. Look whether it was done.",
};

/** attempt runs an action of the user, and shows why it is refused. */
export async function attempt(action: () => unknown): Promise<void> {
  try {
    await action();
  } catch (error) {
    notify((error instanceof SwitchboardError && sentences[error.code]) || (error as Error).message);
  }
}

/** seconds returns the time until `until`, which is in ms since 1970. */
export const seconds = (until: number | undefined) => Math.max(0, Math.ceil(((until ?? 0) - Date.now()) / 1000));

/** directions are the steps of the arrow keys. */
export const directions: Record<string, [dx: number, dy: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** arrows moves the focus with the arrow keys, to the nearest element in the direction. Tab reaches one element. */
export function arrows(container: HTMLElement | SVGElement, selector: string): void {
  const elements = [...container.querySelectorAll<HTMLElement>(selector)];
  elements.forEach((element, i) => (element.tabIndex = i ? -1 : 0));
  container.addEventListener("focusin", (event) => {
    for (const element of elements) element.tabIndex = element === event.target ? 0 : -1;
  });
  container.addEventListener("keydown", (event) => {
    const direction = directions[(event as KeyboardEvent).key];
    if (!direction) return;
    event.preventDefault();
    nearest(elements, middle(event.target as Element), direction)?.focus();
  });
}

function nearest<T extends Element>(elements: T[], [x0, y0]: number[], [dx, dy]: [number, number]): T | undefined {
  const distance = (element: T) => {
    const [x, y] = middle(element).map((value, i) => value - [x0!, y0!][i]!) as [number, number];
    const along = x * dx + y * dy;
    return along > 1 ? along + 2 * Math.abs(x * dy + y * dx) : Infinity;
  };
  const best = elements.reduce((a, b) => (distance(b) < distance(a) ? b : a));
  return distance(best) < Infinity ? best : undefined;
}

function middle(element: Element): [x: number, y: number] {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}
