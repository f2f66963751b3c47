/** Calls f every so often while the page can be seen; returns the end of it. */
export function whileSeen(f: () => void, everyMs: number): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) f();
  }, everyMs);
  return () => clearInterval(timer);
}
