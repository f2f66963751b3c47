import type { Sink } from '../api/types';

/** A sink as its form has it. */
export interface SinkForm {
  type: Sink['type'];
  /** The URL of a webhook, the address of a syslog. */
  to: string;
  /** Typed here; one that the relay has is never shown. */
  secret: string;
  kept: boolean;
  access: boolean;
  refused: boolean;
  audit: boolean;
  client: boolean;
  enabled: boolean;
  /** What the form does not show: it is given back as it came. */
  rest: Pick<Sink, 'ca' | 'facility'>;
}

/** Returns the form of a sink; without one, that of a new one. */
export function sinkForm(s?: Sink): SinkForm {
  const events = s?.events ?? ['access'];
  return {
    type: s?.type ?? 'webhook',
    to: s?.url ?? s?.address ?? '',
    secret: '',
    kept: s?.has_secret ?? false,
    access: events.includes('access'),
    refused: s?.refused_only ?? false,
    audit: events.includes('audit'),
    client: events.includes('client'),
    enabled: s?.enabled ?? true,
    rest: {
      ...(s?.ca ? { ca: s.ca } : {}),
      ...(s?.facility === undefined ? {} : { facility: s.facility }),
    },
  };
}

/** Returns the sink of a form. */
export function sinkOf(f: SinkForm): Sink {
  return {
    type: f.type,
    events: (['access', 'audit', 'client'] as const).filter((kind) => f[kind]),
    refused_only: f.refused,
    enabled: f.enabled,
    ...(f.type === 'webhook'
      ? { url: f.to.trim(), ...(f.secret ? { secret: f.secret } : {}) }
      : { address: f.to.trim(), ...f.rest }),
  };
}
