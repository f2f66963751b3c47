import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = (app: string) => fileURLToPath(new URL(`../dist/${app}/`, import.meta.url));

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * The page that collects what goes wrong in it, for a browser whose driver does
 * not tell: it loads watch.js before anything else.
 */
export const watched = '/watched.html';

async function content(name: string, app: string): Promise<string | Buffer> {
  if (name === '/watch.js') return readFile(new URL('watch.js', import.meta.url));
  if (name !== watched) return readFile(dist(app) + name);
  const page = await readFile(`${dist(app)}/index.html`, 'utf8');
  return page.replace('<head>', '<head><script src="/watch.js"></script>');
}

/** Answers with a file of an app's dist. */
export async function serveFile(
  path: string,
  res: ServerResponse,
  app: 'agent' | 'console' = 'agent',
): Promise<void> {
  const name = path === '/' ? '/index.html' : normalize(path);
  try {
    const body = await content(name, app);
    res.writeHead(200, { 'Content-Type': types[extname(name)] ?? 'application/octet-stream' });
    res.end(body);
  } catch {
    res.writeHead(404).end();
  }
}
