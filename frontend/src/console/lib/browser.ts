/** Returns a browser's name and system from what it calls itself, for people. */
export function browserOf(agent: string | undefined): string {
  if (!agent) return '–';
  const name = /(Edg|OPR|Firefox|Chrome|Safari|curl)[/ ]?(\d+)?/.exec(
    agent.includes('Chrome')
      ? agent.replace(/Safari\/\S+/, '')
      : agent.replace(/Version\/\S+ /, ''),
  );
  const edge = /Edg\/(\d+)/.exec(agent);
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(agent);
  const what = edge
    ? `Edge ${edge[1]}`
    : name
      ? `${name[1]} ${name[2] ?? ''}`.trim()
      : agent.slice(0, 30);
  return system ? `${what}, ${system[1] === 'Mac OS X' ? 'macOS' : system[1]}` : what;
}
