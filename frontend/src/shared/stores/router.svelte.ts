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

/** With an entry of the history: the one before is the same page without the detail. */
const over = { over: true };

export class Router<Page extends string> {
  current: Route<Page>;
  readonly #pages: readonly [Page, ...Page[]];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(pages: readonly [Page, ...Page[]]) {
    this.#pages = pages;
    this.current = $state.raw(readHash('', pages));
  }

  start(): void {
    const read = () => {
      this.#stop();
      this.current = readHash(location.hash, this.#pages);
    };
    addEventListener('hashchange', read);
    read();
  }

  /**
   * Goes to a page; within one, what is looked for stays. Replacing keeps the
   * way back clean of each small step.
   */
  go(page: Page, id = '', replace = false): void {
    const { page: before, id: open } = this.current;
    const query = page === before ? this.current.query : {};
    if (this.#timer && !replace) this.#write();
    this.#stop();
    // At once, not with the event that a new hash brings later: the next key that
    // is pressed is for what is shown then.
    this.current = { page, id, query };
    if (replace) this.#write();
    else
      history.pushState(
        page === before && id && !open ? over : null,
        '',
        writeHash(page, id, query),
      );
  }

  /** Closes what the page shows in detail; the way back is as it was before that. */
  close(): void {
    const { page, query } = this.current;
    if (!(history.state as typeof over | null)?.over) return this.go(page, '', true);
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

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #write(): void {
    this.#stop();
    const { page, id, query } = this.current;
    history.replaceState(null, '', writeHash(page, id, query));
  }
}
