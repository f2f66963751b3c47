// Says how large the page is, and fails if it is over its bound.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const bound = 150 * 1024;
let total = 0;
for (const name of readdirSync('dist', { recursive: true }).sort()) {
  const path = `dist/${name}`;
  if (!statSync(path).isFile()) continue;
  const size = gzipSync(readFileSync(path), { level: 9 }).length;
  total += size;
  console.log(`${String(size).padStart(7)}  ${name}`);
}
console.log(`${String(total).padStart(7)}  of ${bound}`);
if (total > bound) process.exit(1);
