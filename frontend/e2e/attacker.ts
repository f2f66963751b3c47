/** The page of the attacker, for every browser. */
import { readFileSync } from 'node:fs';

// Inside a page, the end of a script inside the script is its end.
const script = readFileSync(new URL('attacker.js', import.meta.url), 'utf8').replaceAll(
  '</script>',
  String.raw`<\/script>`,
);
export const attackerPage = `<!doctype html><title>attacker</title><body><script>${script}</script>`;

/** Returns what the caller has to say in its environment. */
export function need(name: string): string {
  const value = process.env[name];
  if (value) return value;
  console.error(`set ${name}; the head of ${process.argv[1]} says to what`);
  process.exit(2);
}
