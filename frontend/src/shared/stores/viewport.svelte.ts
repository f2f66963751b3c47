/** How much room there is, and how large text is; rows of a virtual list have to know. */
class Viewport {
  narrow = $state(false);
  /** There is hardly any: a phone with large text. */
  tiny = $state(false);
  /** There is room for a list and a detail beside each other. */
  wide = $state(true);
  /** How much larger than usual the reader wants text. */
  scale = $state(1);

  start(): void {
    const narrow = matchMedia('(max-width: 60em)');
    const tiny = matchMedia('(max-width: 20em)');
    const wide = matchMedia('(min-width: 72em)');
    const look = () => {
      this.narrow = narrow.matches;
      this.tiny = tiny.matches;
      this.wide = wide.matches;
    };
    for (const query of [narrow, tiny, wide]) query.addEventListener('change', look);
    look();
    const measure = () => {
      const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      if (size > 0) this.scale = size / 16;
    };
    // Nothing tells of a change but what it does to something's size.
    const probe = document.body.appendChild(document.createElement('span'));
    probe.className = 'probe';
    probe.ariaHidden = 'true';
    new ResizeObserver(measure).observe(probe);
    measure();
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
