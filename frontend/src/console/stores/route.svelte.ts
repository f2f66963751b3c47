/** The pages, in the order of the navigation. */
export const pages = [
  'overview',
  'clients',
  'endpoints',
  'domains',
  'policies',
  'access',
  'errors',
  'nodes',
  'audit',
  'settings',
] as const;
export type Page = (typeof pages)[number];

export interface Route {
  page: Page;
  /** What the page shows in detail, if anything. */
  id: string;
  query: URLSearchParams;
}

/** Reads a location's hash; what is unknown is the overview. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [name = '', ...rest] = path.split('/');
  const page = pages.find((p) => p === name);
  if (!page) return { page: 'overview', id: '', query: new URLSearchParams() };
  let id: string;
  try {
    id = decodeURIComponent(rest.join('/'));
  } catch {
    id = '';
  }
  return { page, id, query: new URLSearchParams(query) };
}

/** Returns the link to a page. */
export function href(page: Page, id = '', query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(query).toString();
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}${asked ? `?${asked}` : ''}`;
}

class Router {
  current = $state.raw<Route>(parseRoute(''));

  start(): void {
    const read = () => (this.current = parseRoute(location.hash));
    addEventListener('hashchange', read);
    read();
  }

  /** Goes to a page. Replacing keeps the way back clean of each small step. */
  go(page: Page, id = '', replace = false): void {
    const to = href(page, id);
    if (!replace) {
      location.hash = to;
      return;
    }
    history.replaceState(null, '', to);
    this.current = parseRoute(to);
  }
}

export const router = new Router();
