/** One server-sent event, its data not yet decoded. */
export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

/**
 * Parses an event stream piece by piece, as the HTML standard has it (section
 * 9.2.6). A line may be cut anywhere between two pieces. The browser's own
 * EventSource cannot send a Bearer token and hides why it was refused, so the
 * stream is read by fetch.
 */
export class EventParser {
  #rest = '';
  #name = '';
  #data: string[] = [];
  #id = '';

  /** Returns the events that became whole with this piece. */
  push(piece: string): ServerEvent[] {
    this.#rest += piece;
    const events: ServerEvent[] = [];
    for (;;) {
      const end = this.#rest.search(/\r\n|\n|\r(?=[^\n])/);
      if (end < 0) return events;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest.startsWith('\r\n', end) ? 2 : 1));
      const event = this.#line(line);
      if (event) events.push(event);
    }
  }

  #line(line: string): ServerEvent | undefined {
    if (line === '') return this.#dispatch();
    if (line.startsWith(':')) return undefined;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#name = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    const data = this.#data;
    const name = this.#name || 'message';
    this.#data = [];
    this.#name = '';
    if (data.length === 0) return undefined;
    return { id: this.#id, name, data: data.join('\n') };
  }
}
