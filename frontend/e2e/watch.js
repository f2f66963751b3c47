/** Collects what goes wrong in a page, from before its own scripts begin. */
window.problems = [];
addEventListener(
  'error',
  ({ target, message }) => window.problems.push(message ?? `not loaded: ${target.outerHTML}`),
  true,
);
addEventListener('unhandledrejection', ({ reason }) =>
  window.problems.push(`unhandled: ${reason}`),
);
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  window.problems.push(`${violatedDirective} forbids ${blockedURI}`),
);
for (const level of ['error', 'warn'])
  console[level] = (...said) => window.problems.push(said.map(String).join(' '));
