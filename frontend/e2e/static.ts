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

/** Answers with a file of an app's dist. */
export async function serveFile(
  path: string,
  res: ServerResponse,
  app: 'agent' | 'console' = 'agent',
): Promise<void> {
  const name = path === '/' ? '/index.html' : normalize(path);
  try {
    const body = await readFile(dist(app) + name);
    res.writeHead(200, { 'Content-Type': types[extname(name)] ?? 'application/octet-stream' });
    res.end(body);
  } catch {
    res.writeHead(404).end();
  }
}
