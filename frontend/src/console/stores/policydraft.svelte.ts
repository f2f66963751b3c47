import { call, Problem, send } from '../../shared/api/client';
import {
  changed,
  documentOf,
  formOf,
  merge,
  type Part,
  type PolicyForm,
} from '../../shared/policy/policyform';
import type { AuditEntry, AuditPage, Policy } from '../api/types';
import { session } from './session.svelte';

/** What others have made of a policy while it was changed here. */
export interface Newer {
  form: PolicyForm;
  tag: string | undefined;
  /** They have removed it. */
  gone: boolean;
  parts: Part[];
  /** Who it was and when, from the audit log, as far as that is known. */
  entry: AuditEntry | undefined;
}

/** A policy while it is changed: what the relay has, and what is typed over it. */
export class PolicyDraft {
  form = $state(formOf({}));
  loaded = $state(false);
  refused = $state.raw<unknown>();
  newer = $state.raw<Newer>();
  /** What both have changed, after the newer one was taken. */
  both = $state.raw<readonly Part[]>();
  #before = $state.raw(formOf({}));
  readonly dirty = $derived(this.loaded && changed(this.#before, this.form).length > 0);
  /** Tells the policy that was loaded from others; null is none, undefined unknown. */
  #tag: string | null | undefined;
  readonly #target: string;
  /** Its name in the audit log: #target may be the first label alone. */
  #name: string;

  constructor(target: string) {
    this.#target = this.#name = target;
  }

  // Without what is in force there is no form: saved, it would let everybody in.
  async load(): Promise<void> {
    this.refused = undefined;
    try {
      const found = await this.#ask('GET');
      this.#take(found.form, found.tag);
    } catch (error) {
      // No policy yet is where a new one begins.
      if (isMissing(error)) this.#take(formOf({}), null);
      else this.#fail(error);
    }
  }

  /** Saves the form, if nobody else has changed the policy meanwhile; reports success. */
  async save(): Promise<boolean> {
    this.refused = this.newer = undefined;
    const sent = $state.snapshot(this.form);
    const headers: Record<string, string> =
      this.#tag === null ? { 'If-None-Match': '*' } : this.#tag ? { 'If-Match': this.#tag } : {};
    try {
      const saved = await this.#ask('PUT', { headers, body: documentOf(sent).document });
      // What was typed while it was sent stays.
      const { form } = merge(sent, $state.snapshot(this.form), saved.form);
      this.#take(saved.form, saved.tag);
      this.form = form;
      return true;
    } catch (error) {
      this.#fail(error);
      if (error instanceof Problem && error.status === 412) await this.#look();
      return false;
    }
  }

  /** Takes the newer policy: with what was typed here on top of it, or as it is. */
  catchUp(keep: boolean): void {
    const { newer } = this;
    if (!newer) return;
    const mine = $state.snapshot(this.form);
    // On top of nothing, a few changes alone would let in whom the rest had kept out.
    const next = newer.gone ? { form: mine, both: [] } : merge(this.#before, mine, newer.form);
    this.#take(newer.form, newer.gone ? null : newer.tag);
    if (!keep) return;
    this.form = next.form;
    this.both = next.both;
  }

  async #look(): Promise<void> {
    try {
      const found = await this.#ask('GET').catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
      const form = found?.form ?? formOf({});
      this.newer = {
        form,
        tag: found?.tag,
        gone: !found,
        parts: changed(this.#before, form),
        entry: await lastChange(this.#name),
      };
      this.refused = undefined;
    } catch (error) {
      this.#fail(error);
    }
  }

  async #ask(method: 'GET' | 'PUT', o: Parameters<typeof send>[2] = {}) {
    const answer = await send(method, `policies/${encodeURIComponent(this.#target)}`, o);
    const { data } = (await answer.json()) as { data: Policy };
    const tag = answer.headers.get('ETag') ?? undefined;
    this.#name = data.target;
    return { form: formOf(data.policy), tag };
  }

  #take(form: PolicyForm, tag: string | null | undefined): void {
    this.form = form;
    this.#before = structuredClone(form);
    this.#tag = tag;
    this.newer = this.both = undefined;
    this.loaded = true;
  }

  #fail(error: unknown): void {
    session.met(error);
    this.refused = error;
  }
}

const isMissing = (error: unknown) => error instanceof Problem && error.status === 404;

/** Returns who changed a policy last; a relay without audit log does not know. */
async function lastChange(target: string): Promise<AuditEntry | undefined> {
  const query = new URLSearchParams({ action: 'policy.', target, limit: '1' });
  try {
    return (await call<AuditPage>('GET', `audit?${query.toString()}`)).items[0];
  } catch {
    return undefined;
  }
}
