/** The pages, in the order of the navigation. */
export const pages = [
  'overview',
  'tunnels',
  'inspector',
  'logs',
  'diagnostics',
  'settings',
] as const;
export type Page = (typeof pages)[number];

export interface Route {
  page: Page;
  /** What the page shows in detail, if anything. */
  id: string;
}

/** Reads a location's hash; what is unknown is the overview. */
export function parseRoute(hash: string): Route {
  const [name = '', ...rest] = hash.replace(/^#\/?/, '').split('/');
  const page = pages.find((p) => p === name);
  if (!page) return { page: 'overview', id: '' };
  try {
    return { page, id: decodeURIComponent(rest.join('/')) };
  } catch {
    return { page, id: '' };
  }
}

/** Returns the link to a page. */
export function href(page: Page, id = ''): string {
  return id ? `#/${page}/${encodeURIComponent(id)}` : `#/${page}`;
}

class Router {
  current = $state.raw<Route>({ page: 'overview', id: '' });

  start(): void {
    const read = () => (this.current = parseRoute(location.hash));
    addEventListener('hashchange', read);
    read();
  }

  /** Goes to a page. Replacing keeps the way back clean of each small step. */
  go(page: Page, id = '', replace = false): void {
    if (!replace) {
      location.hash = href(page, id);
      return;
    }
    history.replaceState(null, '', href(page, id));
    this.current = { page, id };
  }
}

export const router = new Router();
