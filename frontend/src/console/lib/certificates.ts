import type { Tone } from '../../shared/lib/tone';
import type { Certificate } from '../api/types';

const day = 86_400_000;

/** Returns how urgent the end of a certificate is: renewal should long have come a week before. */
export function certificateTone(c: Certificate, now: number): Tone {
  if (!c.not_after) return 'idle';
  const left = Date.parse(c.not_after) - now;
  return left <= 0 ? 'bad' : left < 7 * day ? 'warn' : 'ok';
}
