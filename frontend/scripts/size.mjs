// Says how large the pages are, and fails if one is over its bound.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const bound = 150 * 1024;
for (const app of ['agent', 'console']) {
  let total = 0;
  for (const name of readdirSync(`dist/${app}`, { recursive: true }).sort()) {
    const path = `dist/${app}/${name}`;
    if (!statSync(path).isFile()) continue;
    const size = gzipSync(readFileSync(path), { level: 9 }).length;
    total += size;
    console.log(`${String(size).padStart(7)}  ${app}/${name}`);
  }
  console.log(`${String(total).padStart(7)}  of ${bound}`);
  if (total > bound) process.exitCode = 1;
}
