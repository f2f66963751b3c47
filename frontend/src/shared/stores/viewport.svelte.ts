/** How much room there is; rows of a virtual list have to know it. */
class Viewport {
  narrow = $state(false);

  start(): void {
    const media = matchMedia('(max-width: 760px)');
    this.narrow = media.matches;
    media.addEventListener('change', (e) => (this.narrow = e.matches));
  }
}

export const viewport = new Viewport();

class Clock {
  now = $state(Date.now());

  /** Ticks once a second for as long as the page lives. */
  start(tick: (now: number) => void): void {
    setInterval(() => {
      this.now = Date.now();
      tick(this.now);
    }, 1000);
  }
}

export const clock = new Clock();
