/**
 * What a hostile page tries, as its own script. `attack(base, token)` aims at the
 * daemon under base and resolves to all that was not refused; that list has to be
 * empty. Nothing of it needs a person's click.
 */
window.attack = async (base, token) => {
  const through = [];
  const at = (path) => base + path;
  const patience = 5_000;
  const settle = (start) =>
    new Promise((resolve) => {
      setTimeout(resolve, patience);
      start(resolve);
    });

  const tunnel = '{"type":"tcp","local_port":9,"name":"by-the-attacker"}';
  const configure = JSON.stringify({ auth_token: token });
  const multipart = () => {
    const form = new FormData();
    form.append('local_port', '9');
    return form;
  };
  const asks = [
    ...[
      '/',
      '/healthz',
      '/metrics',
      '/api/v1/status',
      '/api/v1/config',
      '/api/v1/requests.har',
    ].map((path) => ['GET', path]),
    ['POST', '/api/v1/pause'],
    ['DELETE', '/api/v1/auth'],
    ['POST', '/api/v1/login-links'],
    ['POST', '/api/v1/auth/configure', 'text/plain', configure],
    ['POST', '/api/v1/auth/configure', 'application/json', configure],
    ['POST', '/api/v1/tunnels', 'text/plain', tunnel],
    ['POST', '/api/v1/tunnels', 'application/json', tunnel],
    ['POST', '/api/v1/tunnels', 'application/x-www-form-urlencoded', 'local_port=9'],
    ['POST', '/api/v1/tunnels', '', multipart()],
  ];
  const tries = [];
  for (const mode of ['cors', 'no-cors', 'same-origin'])
    for (const credentials of ['omit', 'same-origin', 'include'])
      for (const [method, path, type, body] of asks)
        tries.push(async () => {
          const what = `fetch ${mode} ${credentials} ${method} ${path} ${type ?? ''}`;
          try {
            const headers = type ? { 'Content-Type': type } : {};
            const answer = await fetch(at(path), {
              ...{ method, mode, credentials, headers, body },
              signal: AbortSignal.timeout(patience),
            });
            if (answer.type === 'opaque') return;
            // Only a rebound name gets as far as to read the refusal.
            const text = await answer.text();
            if (answer.status !== 403 || !text.includes('"forbidden_'))
              through.push(`${what}: ${answer.status} ${text.slice(0, 200)}`);
          } catch {
            // refused, as it has to be
          }
        });
  await Promise.all(tries.map((attempt) => attempt()));

  const waits = [];
  for (const withCredentials of [false, true])
    waits.push(
      settle((done) => {
        const source = new EventSource(at('/api/v1/events'), { withCredentials });
        source.onopen = () => through.push('EventSource opened');
        source.addEventListener('status', (e) => through.push(`EventSource: ${e.data}`));
        source.onerror = () => {
          source.close();
          done();
        };
      }),
    );
  waits.push(
    settle((done) => {
      const socket = new WebSocket(at('/api/v1/events').replace('http', 'ws'));
      socket.onopen = () => through.push('WebSocket opened');
      socket.onclose = done;
    }),
  );
  for (const path of ['/', '/favicon.svg', '/login.js', '/api/v1/status', '/metrics'])
    for (const [tag, key] of [
      ['img', 'src'],
      ['script', 'src'],
      ['link', 'href'],
    ])
      waits.push(
        settle((done) => {
          const element = document.createElement(tag);
          element.rel = 'stylesheet';
          element.onload = () => {
            through.push(`<${tag}> loaded ${path}`);
            done();
          };
          element.onerror = done;
          element[key] = at(path);
          document.body.append(element);
        }),
      );
  for (const path of ['/', '/api/v1/status'])
    waits.push(
      settle((done) => {
        const frame = document.createElement('iframe');
        frame.onload = done;
        frame.src = at(path);
        document.body.append(frame);
      }),
    );

  navigator.sendBeacon(at('/api/v1/pause'));
  navigator.sendBeacon(at('/api/v1/tunnels'), new Blob([tunnel], { type: 'text/plain' }));

  // As text/plain, name=value is a whole JSON object.
  const fields = { '{"type":"tcp","local_port":9,"name":"': '"}', local_port: '9' };
  const form = (path, enctype) => {
    const inputs = Object.entries(fields).map(([name, value]) => {
      const input = document.createElement('input');
      [input.name, input.value] = [name, value];
      return input;
    });
    const made = document.createElement('form');
    Object.assign(made, { method: 'POST', action: at(path), enctype });
    made.append(...(enctype === 'text/plain' ? inputs.slice(0, 1) : inputs));
    return made;
  };
  let frames = 0;
  for (const path of ['/api/v1/tunnels', '/api/v1/pause', '/api/v1/auth/configure', '/'])
    for (const enctype of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data',
    ])
      waits.push(
        settle((done) => {
          const frame = document.createElement('iframe');
          frame.name = `form${frames++}`;
          const sent = form(path, enctype);
          sent.target = frame.name;
          document.body.append(frame, sent);
          frame.onload = done;
          sent.submit();
        }),
      );
  // A sandboxed frame has the origin "null".
  waits.push(
    settle((done) => {
      const frame = document.createElement('iframe');
      frame.sandbox = 'allow-scripts allow-forms';
      frame.srcdoc = `<script>
        fetch(${JSON.stringify(at('/api/v1/pause'))}, {method: 'POST', mode: 'no-cors'})
          .catch(() => 0)
          .then(() => fetch(${JSON.stringify(at('/api/v1/status'))}))
          .then((a) => a.status === 403 ? 'refused' : a.text(), () => 'refused')
          .then((text) => parent.postMessage(text, '*'));
      </script>`;
      addEventListener('message', (e) => {
        if (e.data !== 'refused') through.push(`sandboxed frame: ${e.data}`);
        done();
      });
      document.body.append(frame);
    }),
  );
  await Promise.all(waits);
  window.last = form('/api/v1/tunnels', 'text/plain'); // sent by the caller: it leaves the page
  document.body.append(window.last);
  return through;
};
