import { ask, call, control, inTurn, Problem, type Options } from '../api/client';
import type {
  Endpoint,
  EndpointEvent,
  List,
  Tunnel,
  TunnelCreate,
  TunnelEvent,
  TunnelPolicy,
  TunnelUpdate,
} from '../api/types';
import { PortError } from '../lib/portrange';
import type { PolicyDocument } from '../../shared/policy/policyform';

/** A policy, and what tells it from the ones before and after it. */
export interface TaggedPolicy {
  policy: TunnelPolicy;
  tag: string | null;
}

/** A deletion that waits, or is under way. */
interface Doomed {
  timer: ReturnType<typeof setTimeout>;
  carryOut: () => void;
}

type Batch = [readonly TunnelEvent[], readonly EndpointEvent[]];

/** How long a deletion waits for a change of mind. */
export const undoFor = 6000;

const path = (id: string, action = '') => `tunnels/${encodeURIComponent(id)}${action}`;

async function askPolicy(method: string, id: string, o: Options = {}): Promise<TaggedPolicy> {
  const { data, headers } = await ask<TunnelPolicy>(method, path(id, '/policy'), o);
  return { policy: data, tag: headers.get('ETag') };
}

/** The tunnels and, while they run, their endpoints. */
export class TunnelStore {
  #tunnels = new Map<string, Tunnel>();
  #endpoints = new Map<string, Endpoint>();
  #doomed = new Map<string, Doomed>();
  /** What events brought since the load that goes on began: the newest one counts. */
  #arrived: Batch[] | undefined;

  /** Oldest first, without those whose deletion is waiting. */
  items = $state.raw<readonly Tunnel[]>([]);
  /** By the tunnel's id, without those of tunnels whose deletion is waiting. */
  endpoints = $state.raw<ReadonlyMap<string, Endpoint>>(new Map());
  loaded = $state(false);

  async load(signal?: AbortSignal): Promise<void> {
    const arrived: Batch[] = [];
    this.#arrived = arrived;
    try {
      const [tunnels, endpoints] = await Promise.all([
        call<List<Tunnel>>('GET', 'tunnels', { signal }),
        call<List<Endpoint>>('GET', 'endpoints', { signal }),
      ]);
      if (this.#arrived !== arrived) return;
      this.#tunnels = new Map(tunnels.items.map((tunnel) => [tunnel.id, tunnel]));
      this.#endpoints = new Map(endpoints.items.map((e) => [e.tunnel_id, e]));
      for (const batch of arrived) this.#take(...batch);
      this.loaded = true;
      this.#publish();
    } finally {
      if (this.#arrived === arrived) this.#arrived = undefined;
    }
  }

  /** Takes a batch of events; one batch is one update of the page. */
  apply(tunnels: readonly TunnelEvent[], endpoints: readonly EndpointEvent[]): void {
    this.#arrived?.push([tunnels, endpoints]);
    this.#take(tunnels, endpoints);
    if (tunnels.length > 0) this.#publish();
    else if (endpoints.length > 0) this.#publishEndpoints();
  }

  #take(tunnels: readonly TunnelEvent[], endpoints: readonly EndpointEvent[]): void {
    for (const { action, tunnel } of tunnels) {
      if (action === 'deleted') this.#forget(tunnel.id);
      else this.#tunnels.set(tunnel.id, tunnel);
    }
    for (const { action, endpoint } of endpoints) {
      if (action !== 'down') this.#endpoints.set(endpoint.tunnel_id, endpoint);
      else if (this.#endpoints.get(endpoint.tunnel_id)?.id === endpoint.id)
        this.#endpoints.delete(endpoint.tunnel_id);
    }
  }

  #forget(id: string): void {
    this.#tunnels.delete(id);
    this.#endpoints.delete(id);
  }

  #publish(): void {
    this.items = [...this.#tunnels.values()]
      .filter((tunnel) => !this.#doomed.has(tunnel.id))
      .sort((a, b) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id));
    this.#publishEndpoints();
  }

  #publishEndpoints(): void {
    this.endpoints = new Map([...this.#endpoints].filter(([id]) => !this.#doomed.has(id)));
  }

  #keep(tunnel: Tunnel): Tunnel {
    this.#tunnels.set(tunnel.id, tunnel);
    this.#publish();
    return tunnel;
  }

  get(id: string): Tunnel | undefined {
    return this.#tunnels.get(id);
  }

  async create(wanted: TunnelCreate): Promise<Tunnel> {
    return this.#keep(await control<Tunnel>('POST', 'tunnels', { body: wanted }));
  }

  /** Makes the tunnels of several ports, or none: what was made is deleted again. */
  async createAll(wanted: readonly TunnelCreate[]): Promise<Tunnel[]> {
    const made: Tunnel[] = [];
    for (const one of wanted)
      try {
        made.push(await this.create(one));
      } catch (error) {
        throw wanted.length === 1
          ? error
          : new PortError(one.local_port, error, await this.#takeBack(made));
      }
    return made;
  }

  /** Returns the names of those that stay. */
  async #takeBack(made: readonly Tunnel[]): Promise<string[]> {
    const left: string[] = [];
    for (const { id, name } of made) await this.#delete(id).catch(() => left.push(name));
    return left;
  }

  async update(id: string, change: TunnelUpdate): Promise<Tunnel> {
    return this.#keep(await control<Tunnel>('PATCH', path(id), { body: change }));
  }

  async start(id: string): Promise<void> {
    this.#keep(await control<Tunnel>('POST', path(id, '/start')));
  }

  async stop(id: string): Promise<void> {
    this.#keep(await control<Tunnel>('POST', path(id, '/stop')));
  }

  /** Who is let in, as the relay holds it. It is asked for when shown, and not kept. */
  policy(id: string): Promise<TaggedPolicy> {
    return askPolicy('GET', id);
  }

  /** Sets the policy, if it is still the one with the tag. */
  setPolicy(id: string, document: PolicyDocument, tag: string | null): Promise<TaggedPolicy> {
    const headers: Record<string, string> = tag ? { 'If-Match': tag } : {};
    return inTurn(() => askPolicy('PUT', id, { body: document, headers }));
  }

  /**
   * Takes the tunnel off the page now and deletes it a little later, unless
   * undo comes first. If the deletion is refused, the tunnel comes back. What
   * waited before is carried out now: the daemon makes one change at a time, and
   * a page that goes can send no more than one.
   */
  deleteSoon(id: string, onerror: (error: unknown) => void, wait = undoFor): void {
    if (this.#doomed.has(id)) return;
    for (const { carryOut } of this.#doomed.values()) carryOut();
    let begun = false;
    const carryOut = () => {
      clearTimeout(timer);
      if (!begun) this.#delete(id).catch(onerror);
      begun = true;
    };
    const timer = setTimeout(carryOut, wait);
    this.#doomed.set(id, { timer, carryOut });
    this.#publish();
  }

  undoDelete(id: string): void {
    clearTimeout(this.#doomed.get(id)?.timer);
    if (this.#doomed.delete(id)) this.#publish();
  }

  async #delete(id: string): Promise<void> {
    try {
      await control('DELETE', path(id)).catch((error: unknown) => {
        // Somebody else was quicker.
        if (!(error instanceof Problem && error.code === 'not_found')) throw error;
      });
      this.#forget(id);
    } finally {
      this.#doomed.delete(id);
      this.#publish();
    }
  }

  /** Carries the waiting deletions out; the page is about to go. */
  flush(): void {
    for (const [id, { timer }] of this.#doomed) {
      clearTimeout(timer);
      // Nobody is left to hear of an error.
      call('DELETE', path(id), { keepalive: true }).catch(() => undefined);
    }
    this.#doomed.clear();
  }
}

export const tunnels = new TunnelStore();
