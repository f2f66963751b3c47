import { describe, expect, it } from 'vitest';
import type { RequestSummary } from '../api/types';
import { visitorOf } from './states';

describe('visitorOf', () => {
  const flow = { visitor: '203.0.113.9:50123' } as RequestSummary;

  it('is the address', () => {
    expect(visitorOf(flow)).toBe('203.0.113.9:50123');
  });

  it('names the client that visits a private tunnel', () => {
    expect(visitorOf({ ...flow, client: 'laptop' })).toBe('laptop 203.0.113.9:50123');
  });
});
