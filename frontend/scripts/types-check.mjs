// Fails if src/api/schema.d.ts is not what openapi.yaml gives now.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';

const source = process.argv[2] ?? '../localapi/openapi.yaml';
const fresh = 'node_modules/.schema.d.ts';
const run = (...args) => execFileSync('npx', args, { stdio: ['ignore', 'ignore', 'inherit'] });

run('openapi-typescript', source, '--default-non-nullable', 'false', '-o', fresh);
run('prettier', '--write', '--log-level', 'warn', '--ignore-path', '.none', fresh);
const same = readFileSync(fresh, 'utf8') === readFileSync('src/api/schema.d.ts', 'utf8');
rmSync(fresh);
if (!same) {
  console.error('src/api/schema.d.ts is not current: run "npm run types" and commit it');
  process.exit(1);
}
