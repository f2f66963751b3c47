/** How a state looks; the words always stand beside the colour. */
export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'idle';
