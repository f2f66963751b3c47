import { visible } from './visible';

/** Returns an address in the pieces between which a line may end: after / and before ? and &. */
export function pieces(address: string): string[] {
  return visible(address)
    .split(/(?<=\/)(?=[^/])|(?=[?&])/)
    .filter((piece) => piece !== '');
}

/** The same for an IP address: after each colon. */
export function ipPieces(ip: string): string[] {
  return visible(ip).split(/(?<=:)(?=[^:])/);
}
