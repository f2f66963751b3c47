import { pause } from '../lib/pause';
import { Unreachable } from './client';
import { EventParser, type ServerEvent } from './sse';

// Daemon and relay send a comment every 15 s.
const silence = 40_000;
// A browser has six connections to a host by HTTP/1.1: a page that nobody has looked
// at for a while gives its own back until somebody does.
const unseen = 10_000;
const glance = 60_000;

/**
 * Follows a stream under a signal of its own, which ends with the outer one, once
 * nothing was heard for 40 s, and once nobody has looked at the page for 10 s. Reports
 * whether it was the last, after which `looked` tells when to go on; what the attempt
 * throws otherwise is thrown.
 */
export async function attended(
  signal: AbortSignal,
  attempt: (signal: AbortSignal, heard: () => void) => Promise<void>,
): Promise<boolean> {
  const mine = new AbortController();
  const stop = () => mine.abort();
  signal.addEventListener('abort', stop, { once: true });
  let watchdog = setTimeout(stop, silence);
  const heard = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(stop, silence);
  };
  let resting = false;
  let rest: ReturnType<typeof setTimeout> | undefined;
  const seen = () => {
    clearTimeout(rest);
    if (!document.hidden) return;
    rest = setTimeout(() => {
      resting = true;
      stop();
    }, unseen);
  };
  document.addEventListener('visibilitychange', seen, { signal: mine.signal });
  seen();
  try {
    await attempt(mine.signal, heard);
  } catch (error) {
    if (!resting) throw error;
  } finally {
    clearTimeout(watchdog);
    clearTimeout(rest);
    signal.removeEventListener('abort', stop);
    mine.abort();
  }
  return resting;
}

/** Waits until somebody looks at the page, or the signal ends. */
export async function looked(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted) {
    const seen = new AbortController();
    const wake = () => seen.abort();
    document.addEventListener('visibilitychange', wake, { signal: seen.signal });
    await pause(glance, signal, seen.signal);
    seen.abort();
  }
}

/** Hands over the events of an answer as they come, until it ends. */
export async function readEvents(
  answer: Response,
  heard: () => void,
  take: (events: ServerEvent[]) => void,
): Promise<void> {
  const reader = answer.body?.getReader();
  if (!reader) throw new Unreachable(false);
  const parser = new EventParser();
  const text = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    take(parser.push(text.decode(value, { stream: true })));
  }
}
