/** Reports whether a public URL stands for all names below one: nothing is at it. */
export const isWildcard = (url: string): boolean => /^[a-z]+:\/\/\*\./.test(url);

/** Reports whether a browser can open a public URL. */
export const isPage = (url: string): boolean => /^https?:/.test(url) && !isWildcard(url);
