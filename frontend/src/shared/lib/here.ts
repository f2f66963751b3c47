import { onDestroy } from 'svelte';

/**
 * Returns what reports whether the component is still on the page, for answers that
 * come late: who has left it is not taken elsewhere by them.
 */
export function whileHere(): () => boolean {
  let here = true;
  onDestroy(() => (here = false));
  return () => here;
}
