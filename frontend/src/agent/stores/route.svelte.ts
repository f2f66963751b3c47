import { Router, writeHash } from '../../shared/stores/router.svelte';

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

/** Returns the link to a page. */
export const href = (page: Page, id = '', query: Record<string, string> = {}) =>
  writeHash(page, id, query);

export const router = new Router<Page>(pages);
