/** A secret that the relay tells this once. */
export interface Secret {
  title: string;
  text: string;
  secret: string;
  /** A command to use it with. */
  command?: string;
}

/**
 * The secrets that are to be shown, one after another. They are not the page's on which
 * they were asked for: whoever has left that before the answer would never see them.
 */
class Secrets {
  #waiting = $state.raw<readonly Secret[]>([]);

  get current(): Secret | undefined {
    return this.#waiting[0];
  }

  show(secret: Secret): void {
    this.#waiting = [...this.#waiting, secret];
  }

  /** The one that is shown has been seen. */
  done(): void {
    this.#waiting = this.#waiting.slice(1);
  }

  /** They are nobody else's. */
  clear(): void {
    this.#waiting = [];
  }
}

export const secrets = new Secrets();
