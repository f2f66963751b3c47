import { parse } from 'svelte/compiler';
import { describe, expect, test } from 'vitest';

/** What of Svelte's syntax tree is looked at. */
interface Node {
  type: string;
  name?: string;
  start: number;
  end: number;
  parameters?: unknown[];
  attributes?: Node[];
  value?: unknown;
  expression?: Node;
  [key: string]: unknown;
}

const pages = import.meta.glob<string>(['../../**/*.svelte', '!./*.svelte'], {
  query: '?raw',
  import: 'default',
  eager: true,
});
const tree = (source: string) => parse(source, { modern: true }).fragment;
// Parsed once and before the tests, whose time has an end that a loaded machine
// would reach: most of what they take is this.
const files = Object.entries(pages).map(([file, source]) => ({ file, source, top: tree(source) }));

const isNode = (v: unknown): v is Node => typeof v === 'object' && v !== null && 'type' in v;

/** Calls see with each node of the page and those that it lies in. */
function walk(v: unknown, see: (node: Node, within: Node[]) => void, within: Node[] = []) {
  if (Array.isArray(v)) return v.forEach((one) => walk(one, see, within));
  if (typeof v !== 'object' || v === null) return;
  const inner = isNode(v) ? [...within, v] : within;
  if (isNode(v)) see(v, within);
  for (const [key, part] of Object.entries(v))
    if (key !== 'metadata' && key !== 'loc') walk(part, see, inner);
}

const attribute = (node: Node, name: string) => node.attributes?.find((a) => a.name === name);

/** Whether what lies in node is there once for each of many. */
function isRow(node: Node, source: string): boolean {
  if (node.type === 'EachBlock') return true;
  if (node.type === 'SnippetBlock') return (node.parameters?.length ?? 0) > 0;
  if (node.type !== 'RegularElement') return false;
  if (node.name === 'li') return true;
  const role = attribute(node, 'role');
  return role !== undefined && /listitem|option/.test(source.slice(role.start, role.end));
}

/** Returns the buttons of rows whose name does not say whose they are. */
function nameless(source: string, top: unknown = tree(source)): string[] {
  const found: string[] = [];
  walk(top, (node, within) => {
    const clicked =
      (node.type === 'Component' && /^(Copy|Link)?Button$|^Menu$/.test(node.name ?? '')) ||
      (node.type === 'RegularElement' && node.name === 'button');
    if (!clicked || !within.some((outer) => isRow(outer, source))) return;
    if (attribute(node, 'of')) return;
    // A name made of the row's, or a text of the row's own: {span.day}.
    const label = attribute(node, 'label') ?? attribute(node, 'aria-label');
    const text = label ? source.slice(label.start, label.end) : source.slice(node.start, node.end);
    if (/t\([^)]*,\s*\{/.test(text) || (!label && />[^<]*\{/.test(text.replace(/=>/g, '')))) return;
    if (within.some((outer) => outer.type === 'RegularElement' && attribute(outer, 'aria-label')))
      return; // a group of that name
    found.push(source.slice(node.start, node.end).replace(/\s+/g, ' '));
  });
  return found;
}

/** Returns where text of strangers stands as it came. */
function unguarded(source: string, top: unknown = tree(source)): string[] {
  const found: string[] = [];
  walk(top, (node, within) => {
    if (node.type !== 'ExpressionTag' || within.at(-1)?.type === 'Attribute') return;
    if (within.some((outer) => outer.type === 'Attribute')) return;
    const text = source.slice(node.start, node.end).replace(/'[^']*'|"[^"]*"/g, '');
    if (/\.(path|host|visitor|hostname|last_error|message)\b(?!\()/.test(text)) found.push(text);
  });
  return found;
}

describe('lists', () => {
  test('there are some', () => {
    expect(files.length).toBeGreaterThan(50);
  });

  test('a button in a row has the name of its row', () => {
    expect(nameless('{#each a as b}<Button label="Stop" />{/each}')).toHaveLength(1);
    expect(nameless('<li><CopyButton text={x} label={t("copy")} /></li>')).toHaveLength(1);
    expect(
      nameless('{#snippet cell(a, b)}<button onclick={f}>Edit</button>{/snippet}'),
    ).toHaveLength(1);
    expect(nameless('<div role="listitem"><Button label="Stop" of={title} /></div>')).toEqual([]);
    expect(nameless('{#snippet actions()}<Button>Add</Button>{/snippet}')).toEqual([]);
    expect(
      files.flatMap(({ file, source, top }) => nameless(source, top).map((at) => `${file}: ${at}`)),
    ).toEqual([]);
  });

  test('text of strangers stands apart, and is shown as what it is', () => {
    expect(unguarded('<b>{r.path}</b>')).toHaveLength(1);
    expect(unguarded('<b title={visible(r.path)}><Plain text={r.path} /></b>')).toEqual([]);
    expect(
      files.flatMap(({ file, source, top }) =>
        unguarded(source, top).map((at) => `${file}: ${at}`),
      ),
    ).toEqual([]);
  });
});
