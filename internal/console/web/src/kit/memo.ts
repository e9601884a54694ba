import { Component, type FunctionComponent, h } from "preact";

/** memo renders a component again only if its properties are not the same. */
export function memo<P extends object>(
  inner: FunctionComponent<P>,
  same: (before: P, after: P) => boolean,
): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P) {
      return !same(this.props as P, next);
    }

    override render() {
      return h(inner, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
