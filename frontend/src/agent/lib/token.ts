/**
 * Finds the auth token in what was pasted: the token itself, with quotes or
 * line breaks of a mail around it, or a whole command that holds one.
 */
export function findToken(pasted: string): string {
  const joined = pasted.replace(/[\r\n\t]+/g, ' ').trim();
  const found = /adit_[A-Za-z0-9_\-.~+/=]+/.exec(joined);
  return found ? found[0] : joined.replace(/^["'`]+|["'`]+$/g, '');
}

/** Reports whether a text can be a token at all; the relay has the last word. */
export function looksLikeToken(text: string): boolean {
  return /^adit_[A-Za-z0-9_\-.~+/=]{16,}$/.test(text);
}
