/** Reports whether a public URL stands for all names below one: nothing is at it. */
export const isWildcard = (url: string): boolean => /^[a-z]+:\/\/\*\./.test(url);

/** Reports whether an address is a private tunnel's: agents of the relay visit it, and nothing else. */
export const isPrivate = (url: string): boolean => url.startsWith('adit://');

/** Reports whether a phone can do something with a public URL. */
export const isPlace = (url: string): boolean => url !== '' && !isWildcard(url) && !isPrivate(url);

/** Reports whether a browser can open a public URL. */
export const isPage = (url: string): boolean => /^https?:/.test(url) && !isWildcard(url);
