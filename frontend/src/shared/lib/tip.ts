/** How long a pointer rests before it is told. */
const rest = 350;

/** What is shown now; there is one at most. */
let shown: Tip | undefined;
let last = 0;
/** The keyboard moves the focus; else it came with a dialog, or went on by itself. */
let moving = false;
let watched = false;

interface Tip {
  of: HTMLElement;
  box: HTMLElement;
  /** Stays until it is put away: it was pressed for. */
  held: boolean;
  end: AbortController;
}

export interface Said {
  /** Of strangers only as `visible` has it. */
  text: string | undefined;
  /** Pressing shows it, too: what it is told of does nothing else. */
  press?: boolean;
}

function watch(): void {
  if (watched) return;
  watched = true;
  const moves = ['Tab', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'];
  addEventListener('keydown', ({ key }) => (moving = moves.includes(key)), true);
}

/** Puts what is shown away. */
function hide(): void {
  shown?.end.abort();
  shown?.box.remove();
  shown = undefined;
}

/** Puts it beside what it is told of, and away if that is out of sight. */
function place(of: HTMLElement, box: HTMLElement): void {
  const at = of.getBoundingClientRect();
  if (at.bottom < 0 || at.top > innerHeight) return hide();
  const { offsetWidth: width, offsetHeight: height } = box;
  const left = Math.max(4, Math.min(at.left + (at.width - width) / 2, innerWidth - width - 4));
  const above = at.top - height - 6;
  const below = Math.min(at.bottom + 6, innerHeight - height - 4);
  box.style.left = `${left}px`;
  box.style.top = `${above > 4 ? above : below}px`;
}

function show(of: HTMLElement, text: string | undefined, held: boolean): void {
  hide();
  if (!text || !of.isConnected) return;
  const box = document.createElement('div');
  box.className = 'tip';
  box.id = `tip-${++last}`;
  box.role = 'tooltip';
  box.popover = 'manual';
  box.textContent = text;
  // In a dialog: what stands outside of it cannot be pointed at.
  (of.closest('dialog') ?? document.body).append(box);
  box.showPopover();
  place(of, box);

  const end = new AbortController();
  const { signal } = end;
  shown = { of, box, held, end };
  const away = (event: Event) => {
    const to = event.target;
    if (!(to instanceof Node && (of.contains(to) || box.contains(to)))) hide();
  };
  // Coming to it with the keyboard may scroll it into sight.
  const follow = () => place(of, box);
  addEventListener('scroll', follow, { signal, capture: true, passive: true });
  addEventListener('resize', follow, { signal });
  addEventListener('pointerdown', away, { signal, capture: true });
  addEventListener(
    'keydown',
    (event) => {
      if (event.key !== 'Escape') return;
      // It alone goes, and not the dialog that it stands in.
      event.preventDefault();
      event.stopPropagation();
      hide();
    },
    { signal, capture: true },
  );
  box.addEventListener('pointerleave', () => !shown?.held && hide(), { signal });
}

/**
 * Tells more of an element to all: to a pointer that rests on it, to the keyboard
 * when it comes to it, and, if pressing does nothing else, to a finger. Escape puts
 * it away; it can be pointed at and selected.
 */
export function tip({ text, press = false }: Said) {
  return (node: HTMLElement): (() => void) => {
    watch();
    const end = new AbortController();
    const { signal } = end;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const mine = () => shown?.of === node;
    const on = <K extends keyof HTMLElementEventMap>(
      name: K,
      run: (event: HTMLElementEventMap[K]) => void,
    ) => node.addEventListener(name, run, { signal });

    on('pointerenter', ({ pointerType }) => {
      if (pointerType !== 'touch' && !mine())
        timer = setTimeout(() => show(node, text, false), rest);
    });
    on('pointerleave', (event) => {
      clearTimeout(timer);
      // On the way into it, it stays.
      if (mine() && !shown?.held && !near(event)) hide();
    });
    on('focusin', ({ target }) => {
      if (moving && target instanceof Element && target.matches(':focus-visible') && !mine())
        show(node, text, false);
    });
    on('focusout', () => mine() && hide());
    on('click', () => {
      clearTimeout(timer);
      if (!press || (mine() && shown?.held)) hide();
      else show(node, text, true);
    });
    return () => {
      end.abort();
      clearTimeout(timer);
      if (mine()) hide();
    };
  };
}

/** Reports whether a pointer is over what is shown, or over the gap before it. */
function near({ clientX: x, clientY: y }: PointerEvent): boolean {
  const at = shown?.box.getBoundingClientRect();
  return !!at && x >= at.left - 8 && x <= at.right + 8 && y >= at.top - 10 && y <= at.bottom + 10;
}
