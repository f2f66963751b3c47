import { describe, expect, it } from 'vitest';
import { byField } from './fields';

interface Form {
  name: string;
  list: string[];
  on: boolean;
}
const { changed, merge } = byField<Form>();
const before: Form = { name: 'a', list: ['x'], on: false };

describe('a form that two have changed', () => {
  it('differs in what is another value', () => {
    expect(changed(before, { ...before, list: ['x'] })).toEqual([]);
    expect(changed(before, { ...before, list: ['x', 'y'], on: true })).toEqual(['list', 'on']);
  });
  it('has the changes of both', () =>
    expect(merge(before, { ...before, on: true }, { ...before, name: 'b' })).toEqual({
      form: { name: 'b', list: ['x'], on: true },
      both: [],
    }));
  it('has what one typed where both changed something', () =>
    expect(
      merge(before, { ...before, name: 'mine', on: true }, { ...before, name: 'theirs', on: true }),
    ).toEqual({ form: { name: 'mine', list: ['x'], on: true }, both: ['name'] }));
});
