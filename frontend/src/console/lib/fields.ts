/** Returns how two forms differ, and are brought together, field by field. */
export function byField<Form extends object>() {
  type Field = keyof Form & string;
  const same = (a: Form, b: Form, field: Field) =>
    JSON.stringify(a[field]) === JSON.stringify(b[field]);
  const changed = (a: Form, b: Form): Field[] =>
    (Object.keys(b) as Field[]).filter((field) => !same(a, b, field));
  const merge = (before: Form, mine: Form, theirs: Form): { form: Form; both: Field[] } => {
    const own = changed(before, mine);
    const form = { ...theirs };
    for (const field of own) form[field] = mine[field];
    return {
      form,
      both: changed(before, theirs).filter((f) => own.includes(f) && !same(mine, theirs, f)),
    };
  };
  return { changed, merge };
}
