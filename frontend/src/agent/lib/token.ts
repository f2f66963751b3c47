/** Reports whether a text is a whole token: the relay's address in it is, before its check sum. */
function isWhole(text: string): boolean {
  try {
    const bytes = atob(text.slice('adit_'.length).replaceAll('-', '+').replaceAll('_', '/'));
    return /^[!-~]+:\d{1,5}$/.test(bytes.slice(fixed, -sum));
  } catch {
    return false;
  }
}

// Before the address are version, fingerprint and secret: see docs/protocol.md.
const fixed = 1 + 32 + 32;
const sum = 4;

/** A token is no longer than this. */
const longest = 512;

/**
 * Finds the auth token in what was pasted: the token itself, with quotes or
 * line breaks of a mail around it, or a whole command that holds one. One that a
 * narrow terminal or a mail has broken into lines is put together again.
 */
export function findToken(pasted: string): string {
  const joined = pasted.replace(/[\r\n\t]+/g, ' ').trim();
  const found = /adit_[A-Za-z0-9_\-.~+/=]+( +[A-Za-z0-9_-]+)*/.exec(joined);
  if (!found) return joined.replace(/^["'`]+|["'`]+$/g, '');
  const [first = '', ...rest] = found[0].split(/ +/);
  let whole = '';
  let token = first;
  for (const piece of rest) {
    token += piece;
    if (token.length > longest) break;
    if (isWhole(token)) whole = token;
  }
  return whole || first;
}

/** Reports whether a text can be a token at all; the relay has the last word. */
export function looksLikeToken(text: string): boolean {
  return /^adit_[A-Za-z0-9_\-.~+/=]{16,}$/.test(text);
}
