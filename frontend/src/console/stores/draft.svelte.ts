import { ask, call, Problem, type Options } from '../../shared/api/client';
import type { AuditEntry, AuditPage } from '../api/types';
import { session } from './session.svelte';

/** What a draft is of: where it is, and how its form and the API's words are each other. */
export interface Kind<Form extends object, Part extends string> {
  path: string;
  /** How it is saved. */
  method: 'PUT' | 'PATCH';
  /** What its changes are in the audit log: the beginning of their names. */
  action: string;
  /** What it is called in the audit log; it may differ from what was asked for. */
  nameOf: (data: unknown) => string;
  formOf: (data: unknown) => Form;
  bodyOf: (form: Form) => unknown;
  /** The form of nothing: where there is none yet, or others have removed it. */
  none?: () => Form;
  /** Nothing there is where a new one begins; else it is an error. */
  begins?: boolean;
  /** Returns the parts in which two forms differ. */
  changed: (a: Form, b: Form) => Part[];
  /** Returns theirs with what differs between before and mine on top, and what both have changed. */
  merge: (before: Form, mine: Form, theirs: Form) => { form: Form; both: Part[] };
}

/** What others have made of something while it was changed here. */
export interface Newer<Form, Part> {
  form: Form;
  tag: string | undefined;
  /** They have removed it. */
  gone: boolean;
  parts: Part[];
  /** Who it was and when, from the audit log, as far as that is known. */
  entry: AuditEntry | undefined;
}

/** Something while it is changed: what the relay has, and what is typed over it. */
export class Draft<Form extends object, Part extends string> {
  // Before it is loaded there is no form: saved, an empty one would replace what is there.
  form = $state<Form>();
  refused = $state.raw<unknown>();
  newer = $state.raw<Newer<Form, Part>>();
  /** What both have changed, after the newer one was taken. */
  both = $state.raw<readonly Part[]>();
  #before = $state.raw<Form>();
  readonly dirty = $derived.by(
    () => !!this.form && !!this.#before && this.kind.changed(this.#before, this.form).length > 0,
  );
  /** Tells what was loaded from others; null is nothing, undefined unknown. */
  #tag: string | null | undefined;
  #name = '';

  constructor(readonly kind: Kind<Form, Part>) {}

  async load(): Promise<void> {
    this.refused = undefined;
    try {
      const found = await this.#ask('GET');
      this.#take(found.form, found.tag);
    } catch (error) {
      if (isMissing(error) && this.kind.begins && this.kind.none)
        this.#take(this.kind.none(), null);
      else this.#fail(error);
    }
  }

  /** Saves the form, if nobody else has changed it meanwhile; reports success. */
  async save(): Promise<boolean> {
    if (!this.form) return false;
    this.refused = this.newer = undefined;
    const sent = $state.snapshot(this.form) as Form;
    const headers: Record<string, string> =
      this.#tag === null ? { 'If-None-Match': '*' } : this.#tag ? { 'If-Match': this.#tag } : {};
    try {
      const { method, bodyOf } = this.kind;
      const saved = await this.#ask(method, { headers, body: bodyOf(sent) });
      // What was typed while it was sent stays.
      const { form } = this.kind.merge(sent, $state.snapshot(this.form) as Form, saved.form);
      this.#take(saved.form, saved.tag);
      this.form = form;
      return true;
    } catch (error) {
      this.#fail(error);
      if (error instanceof Problem && error.status === 412) await this.#look();
      return false;
    }
  }

  /** Takes the newer one: with what was typed here on top of it, or as it is. */
  catchUp(keep: boolean): void {
    const { newer } = this;
    if (!newer || !this.form || !this.#before) return;
    const mine = $state.snapshot(this.form) as Form;
    // On top of nothing, a few changes alone would let in whom the rest had kept out.
    const next = newer.gone
      ? { form: mine, both: [] }
      : this.kind.merge(this.#before, mine, newer.form);
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
      const form = found?.form ?? this.kind.none?.();
      if (!form || !this.#before) return;
      this.newer = {
        form,
        tag: found?.tag,
        gone: !found,
        parts: this.kind.changed(this.#before, form),
        entry: await lastChange(this.kind.action, this.#name),
      };
      this.refused = undefined;
    } catch (error) {
      this.#fail(error);
    }
  }

  async #ask(method: 'GET' | 'PUT' | 'PATCH', o: Options = {}) {
    const { data, headers } = await ask<unknown>(method, this.kind.path, o);
    this.#name = this.kind.nameOf(data);
    return { form: this.kind.formOf(data), tag: headers.get('ETag') ?? undefined };
  }

  #take(form: Form, tag: string | null | undefined): void {
    this.form = form;
    this.#before = structuredClone(form);
    this.#tag = tag;
    this.newer = this.both = undefined;
  }

  #fail(error: unknown): void {
    session.met(error);
    this.refused = error;
  }
}

const isMissing = (error: unknown) => error instanceof Problem && error.status === 404;

/** Returns who changed something last; a relay without audit log does not know. */
async function lastChange(action: string, target: string): Promise<AuditEntry | undefined> {
  const query = new URLSearchParams({ action, target, limit: '1' });
  try {
    return (await call<AuditPage>('GET', `audit?${query.toString()}`)).items[0];
  } catch {
    return undefined;
  }
}
