/** Where the reader is, kept in the location's hash: "#/page/id?name=value". */

export interface Route<Page extends string> {
  page: Page;
  /** What the page shows in detail, if anything. */
  id: string;
  /** What the page looks for, so that a reload and a link find the same. */
  query: Readonly<Record<string, string>>;
}

/** Reads a location's hash; what is unknown is the first of the pages. */
export function readHash<Page extends string>(
  hash: string,
  pages: readonly [Page, ...Page[]],
): Route<Page> {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [name = '', ...rest] = path.split('/');
  const page = pages.find((p) => p === name);
  if (!page) return { page: pages[0], id: '', query: {} };
  let id: string;
  try {
    id = decodeURIComponent(rest.join('/'));
  } catch {
    id = '';
  }
  return { page, id, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the link to a page. What is empty in the query is left out. */
export function writeHash(page: string, id = '', query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}${asked.size > 0 ? `?${asked.toString()}` : ''}`;
}

/** Browsers refuse to write the location at every key that is typed. */
const settle = 250;

/** What an entry of the history knows of itself. */
interface Mark {
  /** Its place among the entries of this page's life. */
  at: number;
  /** The one before is the same page without the detail. */
  over?: boolean;
}

const mark = () => history.state as Mark | null;

/** Has who leaves what is shown asked first: true keeps them here, until leave is called. */
export type Guard = (leave: () => void) => boolean;

export class Router<Page extends string> {
  current: Route<Page>;
  readonly #pages: readonly [Page, ...Page[]];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #at = 0;
  #guard: Guard | undefined;

  constructor(pages: readonly [Page, ...Page[]]) {
    this.#pages = pages;
    this.current = $state.raw(readHash('', pages));
  }

  start(): void {
    this.#at = mark()?.at ?? 0;
    this.current = readHash(location.hash, this.#pages);
    history.replaceState({ ...mark(), at: this.#at } satisfies Mark, '', location.href);
    // It comes for links, too, and unlike hashchange for steps between entries that
    // look the same.
    addEventListener('popstate', () => this.#arrive());
  }

  /** Asks before what is shown is left, by whatever way; returns the end of it. */
  hold(guard: Guard): () => void {
    this.#guard = guard;
    return () => {
      if (this.#guard === guard) this.#guard = undefined;
    };
  }

  /** Does what leaves the page in another way, once nothing keeps the reader here. */
  leave(how: () => void): void {
    if (!this.#kept(how)) how();
  }

  /**
   * Goes to a page; within one, what is looked for stays. Replacing keeps the
   * way back clean of each small step.
   */
  go(page: Page, id = '', replace = false): void {
    const { page: before, id: open } = this.current;
    if ((page !== before || id !== open) && this.#kept(() => this.go(page, id, replace))) return;
    const query = page === before ? this.current.query : {};
    if (this.#timer && !replace) this.#write();
    this.#stop();
    // At once, not with the event that a new hash brings later: the next key that
    // is pressed is for what is shown then.
    this.current = { page, id, query };
    if (replace) this.#write(page === before && !!id && !!open && mark()?.over);
    else {
      const state: Mark = { at: ++this.#at, over: page === before && !!id && !open };
      history.pushState(state, '', writeHash(page, id, query));
    }
  }

  /** Closes what the page shows in detail; the way back is as it was before that. */
  close(): void {
    const { page, query } = this.current;
    if (!mark()?.over) return this.go(page, '', true);
    if (this.#kept(() => this.close())) return;
    this.current = { page, id: '', query };
    history.back();
  }

  /** Changes what the page looks for; empty values look for everything. */
  ask(change: Readonly<Record<string, string | undefined>>): void {
    const { page, id, query } = this.current;
    const next = Object.entries({ ...query, ...change }).filter(([, value]) => value);
    this.current = { page, id, query: Object.fromEntries(next) as Record<string, string> };
    this.#stop();
    this.#timer = setTimeout(() => this.#write(), settle);
  }

  /** Takes what the browser has gone to: by a link, a step back or on, or by hand. */
  #arrive(): void {
    this.#stop();
    const { page, id } = this.current;
    const next = readHash(location.hash, this.#pages);
    const { href } = location;
    const known = mark();
    const step = (known?.at ?? this.#at + 1) - this.#at;
    const leaves = next.page !== page || next.id !== id;
    if (leaves && this.#kept(() => (known ? history.go(step) : location.assign(href)))) {
      history.go(-step);
      return;
    }
    this.#at += step;
    this.current = next;
    if (known) return;
    const state: Mark = { at: this.#at, over: next.page === page && !!next.id && !id };
    history.replaceState(state, '', href);
  }

  /** Reports whether the reader stays; how is how they leave when they may. */
  #kept(how: () => void): boolean {
    const guard = this.#guard;
    return !!guard?.(() => {
      if (this.#guard === guard) this.#guard = undefined;
      how();
    });
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #write(over = false): void {
    this.#stop();
    const { page, id, query } = this.current;
    history.replaceState({ at: this.#at, over } satisfies Mark, '', writeHash(page, id, query));
  }
}
