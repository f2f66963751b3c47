import {
  changed,
  documentOf,
  formOf,
  merge,
  type Part,
  type PolicyForm,
} from '../../shared/policy/policyform';
import type { Client, Policy, Sink } from '../api/types';
import type { Kind } from '../stores/draft.svelte';
import { byField } from './fields';
import { scopeForm, scopeOf, type ScopeForm } from './scopeform';
import { sinkForm, sinkOf, type SinkForm } from './sinkform';

/** A policy, which may be one that is not set yet. */
export const policyOf = (target: string): Kind<PolicyForm, Part> => ({
  path: `policies/${encodeURIComponent(target)}`,
  method: 'PUT',
  action: 'policy.',
  nameOf: (data) => (data as Policy).target,
  formOf: (data) => formOf((data as Policy).policy),
  bodyOf: (form) => documentOf(form).document,
  none: () => formOf({}),
  begins: true,
  changed,
  merge,
});

/** What a client may do. */
export const scopeOfClient = (name: string): Kind<ScopeForm, keyof ScopeForm> => ({
  path: `clients/${encodeURIComponent(name)}`,
  method: 'PATCH',
  // Tokens are changed, too: that is no change of what the client may do.
  action: 'client.set',
  nameOf: (data) => (data as Client).name,
  formOf: (data) => scopeForm((data as Client).scope),
  bodyOf: (form) => ({ scope: scopeOf(form).scope }),
  ...byField<ScopeForm>(),
});

/** A sink that is there. */
export const sinkOfName = (name: string): Kind<SinkForm, keyof SinkForm> => ({
  path: `sinks/${encodeURIComponent(name)}`,
  method: 'PUT',
  action: 'sink.',
  nameOf: () => name,
  formOf: (data) => sinkForm(data as Sink),
  bodyOf: sinkOf,
  none: () => sinkForm(),
  ...byField<SinkForm>(),
});
